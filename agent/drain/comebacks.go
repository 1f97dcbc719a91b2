package drain

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// This file decides which pods stay because they come back. A cordon does not keep pods off the
// node that tolerate its taint, or whose controller names the node. If such a pod is evicted, its
// replacement is likely to come to this node, because it is the emptiest. It would be evicted again
// until the drain times out, and only its controller could change that. EvictLeft evicts these pods
// once more right before the reboot.

const (
	comesBackTolerant = "comes back to the cordoned node: it tolerates the taint node.kubernetes.io/unschedulable"
	comesBackPlaced   = "comes back to the cordoned node again and again: its controller, or another scheduler, puts it there"
)

// comebacks records the pods that come back during a drain.
type comebacks struct {
	// next holds, by controller, the round of the next pod that it creates on the node. It is one
	// more than the round of the last pod that left after it was evicted.
	next map[types.UID]int
	// rounds holds the rounds of the pods on the node. It is 0 if the pod was there first, or no
	// evicted pod of its controller has left yet.
	rounds map[types.UID]int
	// staying are the pods that came back and are left alone.
	staying map[types.UID]Pod
}

func newComebacks() comebacks {
	return comebacks{next: map[types.UID]int{}, rounds: map[types.UID]int{}, staying: map[types.UID]Pod{}}
}

// comesBack says why evictions cannot free the node of a pod in the given round. It is empty if
// they can, or if the pod is not evicted because a rule waits until it has completed or the policy
// never removes it.
func (t target) comesBack(round int) string {
	asks := t.decision.action == v1alpha1.DrainEvict || t.decision.action == v1alpha1.DrainDelete
	switch {
	case !asks || t.decision.undrainable != "":
		return ""
	case round > 0 && t.tolerates:
		return comesBackTolerant
	case round > 1:
		return comesBackPlaced
	}
	return ""
}

// settle decides again about a pod that may have come back. Such a pod stays. If it must not be
// disrupted, the drain waits for it.
func (c comebacks) settle(t target) target {
	delete(c.staying, t.uid)
	why := t.comesBack(c.round(t))
	switch {
	case why == "":
	case t.blocks:
		t.decision.undrainable = blockerMessage
	default:
		t.decision = decision{action: v1alpha1.DrainSkip}
		c.staying[t.uid] = Pod{Namespace: t.Namespace, Name: t.Name, UID: t.uid, Message: why}
	}
	return t
}

// round returns the round of a pod, which is determined when the pod first appears. All pods of the
// first LIST are in round 0.
func (c comebacks) round(t target) int {
	if _, known := c.rounds[t.uid]; !known {
		c.rounds[t.uid] = c.next[t.controller]
	}
	return c.rounds[t.uid]
}

// knows reports whether the pod was on the node before.
func (c comebacks) knows(uid types.UID) bool {
	_, known := c.rounds[uid]
	return known
}

// goes records that a pod is leaving or has left. Only the replacement of a pod that the drain has
// evicted counts as coming back.
func (c comebacks) goes(e *podState) {
	if e != nil && e.asked && e.controller != "" {
		c.next[e.controller] = max(c.next[e.controller], c.rounds[e.uid]+1)
	}
}

// remove records that a pod is gone.
func (c comebacks) remove(uid types.UID) {
	delete(c.rounds, uid)
	delete(c.staying, uid)
}

// forget drops the pods that are not on the node any more.
func (c comebacks) forget(shown map[types.UID]bool) {
	maps.DeleteFunc(c.rounds, func(uid types.UID, _ int) bool { return !shown[uid] })
	maps.DeleteFunc(c.staying, func(uid types.UID, _ Pod) bool { return !shown[uid] })
}

// back lists the pods that came back and stay.
func (c comebacks) back() []Pod {
	return slices.SortedFunc(maps.Values(c.staying), comparePods)
}
