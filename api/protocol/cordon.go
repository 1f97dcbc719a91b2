package protocol

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// ownerAncient is the field manager to which the API server gives the oldest updates, once there are those of more than ten
// managers.
const ownerAncient = "ancient-changes"

// CordonIsAgents reports whether the node is cordoned and the cordon is still the agent's own, by managedFields. An
// administrator who uncordons the node and cordons it again owns the field from then on, and the node stays cordoned.
//
// The agent writes the cordon together with its progress. Where its progress is still in its name and the cordon is not,
// another program or a person has taken the cordon over. An ancient entry names no manager: where no other manager has the field, and without
// managedFields, the record on the Node decides. So an administrator's cordon is taken for the agent's only where both writes
// have become ancient, or where the administrator's has and the node is past the point of no return.
func CordonIsAgents(node *corev1.Node) bool {
	if !node.Spec.Unschedulable {
		return false
	}
	others := false
	for _, entry := range node.ManagedFields {
		cordon, agents := has(entry, "unschedulable"), entry.Manager == v1alpha1.FieldOwnerAgent
		switch {
		case cordon && agents:
			return true
		case cordon && entry.Manager != ownerAncient, agents && entry.Subresource == "" && has(entry, v1alpha1.AnnotationProgress):
			others = true
		}
	}
	return !others
}

// has reports whether a field of this name, wherever it is, belongs to the manager of an entry.
func has(entry metav1.ManagedFieldsEntry, field string) bool {
	return entry.FieldsV1 != nil && strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:`+field+`"`)
}
