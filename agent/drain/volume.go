package drain

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/volume"
)

// uses lists the volumes of a pod that may be attached to its node. One that has completed has let go.
func uses(pod *corev1.Pod) []volume.Use {
	if completed(pod) {
		return nil
	}
	return volume.UsesOf(pod)
}

// kept lists the volumes that the pods which stay use, each once and in order.
func (p *progress) kept() []volume.Use {
	var all []volume.Use
	for _, uses := range p.staying {
		all = append(all, uses...)
	}
	slices.SortFunc(all, func(a, b volume.Use) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Claim.Namespace, b.Claim.Namespace), cmp.Compare(a.Claim.Name, b.Claim.Name))
	})
	return slices.Compact(all)
}
