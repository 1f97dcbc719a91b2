package drain

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/agent/volume"
)

// uses lists the volumes of a pod that may be attached to its node. One that has completed has let go.
func uses(pod *corev1.Pod) []volume.Use {
	if completed(pod) {
		return nil
	}
	return volume.UsesOf(pod)
}

// volumes are those of the pods that stay.
type volumes map[types.UID][]volume.Use

// list has each volume once and in order.
func (v volumes) list() []volume.Use {
	var all []volume.Use
	for _, uses := range v {
		all = append(all, uses...)
	}
	slices.SortFunc(all, func(a, b volume.Use) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Claim.Namespace, b.Claim.Namespace), cmp.Compare(a.Claim.Name, b.Claim.Name))
	})
	return slices.Compact(all)
}
