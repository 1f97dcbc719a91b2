package plan

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// deleters are the taints by which an autoscaler says that it is deleting a node, and who says so. What
// cluster-autoscaler only thinks of (DeletionCandidateOfClusterAutoscaler) is not among them: a shield stops it.
var deleters = map[string]string{
	"ToBeDeletedByClusterAutoscaler": "cluster-autoscaler",
	"karpenter.sh/disrupted":         "Karpenter",
	"karpenter.sh/disruption":        "Karpenter", // before its v1
}

// deleter is the autoscaler that is deleting a node; empty: none is.
func deleter(taints []corev1.Taint) string {
	for _, t := range taints {
		if name := deleters[t.Key]; name != "" {
			return name
		}
	}
	return ""
}

// shields are the annotations that keep autoscalers off a node while it is being rebooted: one that is drained is the best
// victim of a scale-down.
var shields = []string{v1alpha1.AnnotationScaleDownDisabled, v1alpha1.AnnotationDoNotDisrupt}

// Raised is the value of a shield, for cluster-autoscaler and Karpenter exactly this one.
const Raised = "true"

// IsShield reports whether the key of an annotation is a shield's.
func IsShield(key string) bool { return slices.Contains(shields, key) }

// Raise are the shields that a new grant sets: those that nobody else has set, to whatever value. One that an earlier grant
// left behind is still the manager's, and passes to the new grant.
func (n *Node) Raise() []string {
	left := n.Lower()
	var raise []string
	for _, key := range shields {
		if _, there := n.Annotations[key]; !there || slices.Contains(left, key) {
			raise = append(raise, key)
		}
	}
	return raise
}

// Lower are the shields to take away when the grant that the node shows ends: those that it has set, and that nobody has
// changed since. A grant that names anything else has been tampered with.
func (n *Node) Lower() []string {
	if n.Grant == nil {
		return nil
	}
	var lower []string
	for _, key := range n.Grant.Shields {
		if IsShield(key) && n.Annotations[key] == Raised {
			lower = append(lower, key)
		}
	}
	return lower
}
