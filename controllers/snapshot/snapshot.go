// Package snapshot builds the input of decisions about reboots. The manager decides from it, and
// `kubectl reboot` explains from it, so that one snapshot gives both the same answer.
package snapshot

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// Views returns the Nodes in the form that decisions use.
func Views(nodes []corev1.Node) []*record.Node {
	views := make([]*record.Node, len(nodes))
	for i := range nodes {
		views[i] = new(record.Of(&nodes[i]))
	}
	return views
}

// Of returns the snapshot for one of the policies at an instant. A nil policy stands for the nodes
// without a policy. The results of gates are those of the status. The manager, which queries the
// gates, has newer ones.
func Of(policy *v1alpha1.RebootPolicy, policies []v1alpha1.RebootPolicy, nodes []*record.Node, now time.Time) plan.Snapshot {
	s := plan.Snapshot{
		Now: now, Policy: policy, Governor: governor.Of(policies), Nodes: nodes, RebootInterval: record.DefaultRebootInterval,
	}
	if policy != nil {
		s.Schedule, s.WindowInvalid = scheduleOf(policy)
		s.Window = s.Schedule.At(now)
		s.Gates, s.GatesInvalid = policy.Status.Gates, gatesInvalid(policy)
		s.Ledger = s.Governor.Ledgers.For(policy)
	}
	return s
}

// gatesInvalid returns the manager's message about a spec that it cannot act on, if an expression
// may be the cause. Only the manager compiles expressions.
func gatesInvalid(policy *v1alpha1.RebootPolicy) string {
	c := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionAccepted)
	if len(policy.Spec.ObjectGates()) == 0 || c == nil || c.Reason != string(v1alpha1.ReasonInvalid) || c.ObservedGeneration != policy.Generation {
		return ""
	}
	return c.Message
}

// scheduleOf compiles the policy's windows. A schedule that does not compile is closed.
func scheduleOf(policy *v1alpha1.RebootPolicy) (window.Schedule, string) {
	schedule, err := window.Of(&policy.Spec)
	if err != nil {
		return window.Schedule{}, err.Error()
	}
	return schedule, ""
}

// Transform returns Trim as a transform for an informer of Nodes. It passes other objects on
// unchanged.
func Transform(also ...corev1.NodeConditionType) func(any) (any, error) {
	return func(object any) (any, error) {
		if node, ok := object.(*corev1.Node); ok {
			return Trim(node, also...), nil
		}
		return object, nil
	}
}

// decisive are the conditions on which decisions depend.
var decisive = []corev1.NodeConditionType{
	corev1.NodeReady, v1alpha1.NodeRebootRequired, v1alpha1.NodeRebootPermitted, v1alpha1.NodeRebootFailed, corev1.NodeMaintenanceInProgress,
	corev1.NodeMaintenancePlanned, corev1.NodeDrained,
}

// Trim keeps the fields on which decisions depend, about a seventh of a Node. A cache of 15,000
// whole Nodes takes 659 MiB, and the manager with trimmed ones takes 240 (docs/benchmarks.md). Two
// versions of a Node that differ only in a heartbeat become equal. Trim also keeps the conditions
// in also, which are shown to people. Of several conditions of one type it keeps the one that counts:
// a kubelet may report thousands.
func Trim(node *corev1.Node, also ...corev1.NodeConditionType) *corev1.Node {
	info := &node.Status.NodeInfo
	trimmed := &corev1.Node{
		TypeMeta: node.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion,
			Labels: node.Labels, DeletionTimestamp: node.DeletionTimestamp,
		},
		// All taints are kept, because a write replaces the whole list.
		Spec:   corev1.NodeSpec{Unschedulable: node.Spec.Unschedulable, Taints: node.Spec.Taints},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: info.BootID, KernelVersion: info.KernelVersion}},
	}
	asked := asked(node.Annotations)
	for key, value := range node.Annotations {
		if strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/") || record.IsAnswer(value) || record.IsAutoscalerAnnotation(key) || slices.Contains(asked, v1alpha1.AnnotationKey(key)) {
			if trimmed.Annotations == nil {
				trimmed.Annotations = map[string]string{}
			}
			trimmed.Annotations[key] = value
		}
	}
	for i, kind := range slices.Concat(decisive, also) {
		c := v1alpha1.NodeCondition(node.Status.Conditions, kind)
		if c.Type == "" || i >= len(decisive) && slices.Contains(decisive, kind) {
			continue
		}
		if c.Type != v1alpha1.NodeRebootPermitted { // the manager's own condition, whose times matter
			c.LastHeartbeatTime = metav1.Time{}
		}
		trimmed.Status.Conditions = append(trimmed.Status.Conditions, c)
	}
	return trimmed
}

// asked returns the hooks that run for the node. Their values count even if they are not valid
// answers.
func asked(annotations map[string]string) []v1alpha1.AnnotationKey {
	if phase, err := protocol.ParseHookPhase(annotations); err == nil && phase != nil {
		return phase.Hooks
	}
	return nil
}
