package drain

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// blockerMessage is reported of a pod that came between the look before the cordon and the cordon.
const blockerMessage = "gates.blockingPods lets it keep its node until it has completed"

// blockers are the pods that keep their node.
type blockers map[types.UID]target

// list has them in order, each with the message.
func (b blockers) list(message string) []Pod {
	if len(b) == 0 {
		return nil
	}
	pods := make([]Pod, 0, len(b))
	for _, t := range b {
		pods = append(pods, Pod{Namespace: t.Namespace, Name: t.Name, UID: t.uid, Reason: string(v1alpha1.ReasonBlockingPod), Message: message})
	}
	slices.SortFunc(pods, comparePods)
	return pods
}
