// Package volume reports which volumes are whose. A kubelet lists the attached volumes it uses in status.volumesInUse of its
// Node, by names that reveal nothing of pods. What a pod that stays on the node uses is looked up by its claims; every other
// volume in that list was used by a pod that has left, so which pods there were need not be remembered.
package volume

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Use is one volume of a pod that its kubelet may have attached.
type Use struct {
	// Claim is the PersistentVolumeClaim it is the volume of. Zero: the pod describes the volume itself.
	Claim types.NamespacedName
	// Name is the kubelet's for a volume that the pod describes itself. Empty: it is the claim's.
	Name corev1.UniqueVolumeName
}

// UsesOf lists the volumes of a pod that may be attached: those of claims, and those of the old kinds that a pod describes
// itself. A CSI volume that a pod describes itself is never attached.
func UsesOf(pod *corev1.Pod) []Use {
	var uses []Use
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			uses = append(uses, Use{Claim: types.NamespacedName{Namespace: pod.Namespace, Name: v.PersistentVolumeClaim.ClaimName}})
		case v.Ephemeral != nil:
			uses = append(uses, Use{Claim: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name + "-" + v.Name}})
		default:
			if name := Name(described(v)); name != "" {
				uses = append(uses, Use{Name: name})
			}
		}
	}
	return uses
}

// Unaccounted lists the volumes in use that have none of the names which are accounted for, in order.
func Unaccounted(inUse, accounted []corev1.UniqueVolumeName) []corev1.UniqueVolumeName {
	var rest []corev1.UniqueVolumeName
	for _, name := range inUse {
		if !slices.Contains(accounted, name) {
			rest = append(rest, name)
		}
	}
	slices.Sort(rest)
	return slices.Compact(rest)
}
