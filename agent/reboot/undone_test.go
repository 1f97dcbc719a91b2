package reboot

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// triggered reports whether a reconcile is due at once, and takes it.
func (r *Reconciler) triggered() bool {
	select {
	case <-r.Wake.triggers:
		return true
	default:
		return false
	}
}

// A mutating admission policy may drop what the agent writes. If each write triggered the next
// reconcile, the agent of each node would write without end.
func TestReconcile_RepeatsAWriteThatIsUndoneAsSlowlyAsARefusedOne(t *testing.T) {
	r, api, _ := makeGuarded(t, protocol.Record{})
	api.mutates = func(n *corev1.Node) { delete(n.Labels, v1alpha1.LabelRebootRequired) }
	r.triggered()
	for range 3 {
		_, err := r.Reconcile(t.Context(), ctrl.Request{})
		if !nodepatch.IsUndone(err) || r.triggered() {
			t.Errorf("the next write comes at once: %v", err)
		}
	}
	if c := v1alpha1.NodeCondition(api.node.Status.Conditions, v1alpha1.NodeRebootRequired); c.Status != corev1.ConditionTrue {
		t.Errorf("%+v", c)
	}
	notes := strings.Join(r.announcer.emitted(), "\n")
	const required, undone = "Normal RebootRequired", "did not keep label reboot-operator.io/reboot-required"
	if strings.Count(notes, required) != 1 || strings.Count(notes, undone) != 1 {
		t.Errorf("events:\n%s", notes)
	}
	api.mutates = nil
	if _, err := r.Reconcile(t.Context(), ctrl.Request{}); err != nil || !r.triggered() {
		t.Errorf("once it is kept: %v", err)
	}
}

// Without the progress nobody would know that the cordon is the agent's.
func TestStartDrain_UndoesItsCordonIfTheProgressIsDropped(t *testing.T) {
	r, api, _ := makeReconciler(t, granted())
	api.keeps = true
	api.mutates = func(n *corev1.Node) { delete(n.Annotations, v1alpha1.AnnotationProgress) }
	r.triggered()
	_, err := r.Reconcile(t.Context(), ctrl.Request{})
	if !nodepatch.IsUndone(err) || api.node.Spec.Unschedulable {
		t.Errorf("cordoned: %t, %v", api.node.Spec.Unschedulable, err)
	}
	if len(api.patches) != 2 {
		t.Errorf("patches %q", api.patches)
	}
}

// What else is dropped from the write that passes the point of no return does not stop the reboot.
func TestCommitReboot_GoesOnIfOnlyALabelIsDropped(t *testing.T) {
	r, api, _ := makeReconciler(t, protocol.Record{})
	r.Reports.Put(engine.Report{Engine: "e", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Message: "Staged."})
	api.mutates = func(n *corev1.Node) { n.Labels = nil }
	patch := progressPatch(api.node, *makeProgress(1, rebootingPhase, boot))
	patch.Label(v1alpha1.LabelRebootRequired, "true")
	if err := r.writer.writeStatus(t.Context(), api.node.DeepCopy(), patch); err != nil {
		t.Error(err)
	}
}
