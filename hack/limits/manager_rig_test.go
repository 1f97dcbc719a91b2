package limits

import (
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

// leaseName is the Lease of the managers.
const leaseName = "reboot-operator-manager"

// site is a namespace, a Node that needs a reboot, and a manager as a process.
type site struct {
	*front

	name    string
	manager *process.Process
}

func newSite(t *testing.T, name string) *site {
	t.Helper()
	s := &site{front: newFront(t), name: name}
	create(s.t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return s
}

// needy is a Node that waits for its reboot.
func (s *site) needy() {
	s.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.name, Labels: map[string]string{"site": s.name}}}
	create(s.t, node)
	node.Status.NodeInfo.BootID = "boot"
	for kind, reason := range map[corev1.NodeConditionType]string{corev1.NodeReady: "KubeletReady", v1alpha1.NodeRebootRequired: "UpdateStaged"} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Now(),
		})
	}
	must(s.t, api.Status().Update(s.t.Context(), node))
}

// policy governs that Node.
func (s *site) policy(edits ...func(*v1alpha1.RebootPolicySpec)) {
	s.t.Helper()
	policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: s.name}, Spec: v1alpha1.RebootPolicySpec{
		NodeSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"site": s.name}}, Settle: &metav1.Duration{},
	}}
	for _, edit := range edits {
		edit(&policy.Spec)
	}
	create(s.t, policy)
}

func (s *site) start() {
	s.t.Helper()
	s.startAt(s.URL)
}

func (s *site) startAt(server string) {
	s.t.Helper()
	var err error
	s.manager, err = env.Processes.Start(process.Program{
		Name: s.name, Path: manager,
		Args: []string{
			"--kubeconfig=" + kubeconfig(s.t, server), "--namespace=" + s.name, "--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:0",
		},
	})
	must(s.t, err)
	s.t.Cleanup(s.manager.Kill)
}

// holder is who leads. Empty: no manager does.
func (s *site) holder() string {
	s.t.Helper()
	lease := &coordinationv1.Lease{}
	if err := api.Get(s.t.Context(), client.ObjectKey{Namespace: s.name, Name: leaseName}, lease); err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// elected waits until the manager knows that it leads.
func (s *site) elected() {
	s.t.Helper()
	until(s.t, "the manager to be elected", func() bool { return strings.Contains(s.manager.Tail(100), "uccessfully acquired lease") })
}

// leads runs the manager, and waits until it acts as leader.
func (s *site) leads() {
	s.t.Helper()
	s.start()
	s.elected()
	until(s.t, "its workers to start", func() bool { return strings.Contains(s.manager.Tail(100), "Starting workers") })
}

// another is a manager elsewhere that leads for an hour.
func (s *site) another() {
	s.t.Helper()
	now := metav1.NewMicroTime(time.Now())
	create(s.t, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: leaseName}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("another"), LeaseDurationSeconds: new(int32(3600)), AcquireTime: &now, RenewTime: &now,
	}})
}
