package plan

import (
	corev1 "k8s.io/api/core/v1"
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
