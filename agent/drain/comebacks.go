package drain

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// This file states which pods stay because they come back. A cordon does not keep pods off the node that tolerate its taint, or whose
// controller names the node. The replacement of an evicted one is likely to come to this node, which is the emptiest. It would be
// evicted again until the drain's time is over, and only the pod's controller could end that. EvictLeft
// asks these pods once more right before the reboot.

const (
	comesBackTolerant = "comes back to the cordoned node: it tolerates the taint node.kubernetes.io/unschedulable"
	comesBackPlaced   = "comes back to the cordoned node again and again: its controller, or a scheduler of its own, puts it there"
)

// comebacks is what a drain remembers of pods that come back.
type comebacks struct {
	// next is, by controller, the round of the next pod that it puts on the node. It is one more than that of the last pod that was asked
	// to leave and went.
	next map[types.UID]int
	// rounds are those of the pods on the node. 0: it was there first, or none of its controller's was asked and went.
	rounds map[types.UID]int
	// staying are the pods that came back and are left alone.
	staying map[types.UID]Pod
}

func newComebacks() comebacks {
	return comebacks{next: map[types.UID]int{}, rounds: map[types.UID]int{}, staying: map[types.UID]Pod{}}
}

// comesBack states why no eviction rids the node of a pod of some round. Empty: one may, or no eviction is sent: a rule waits
// until the pod has completed, or the policy never lets it go.
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

// settle decides about a pod anew where it has come back: it stays, unless it is one that keeps its node. Then the drain
// waits for it.
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

// round is that in which the pod came, which is found out when it does. Before the first LIST nothing was asked, so all that
// are in it came in round 0.
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

// goes records that a pod is going or gone. Only of those that the drain has asked is a replacement one that comes back.
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

// forget drops what is known of the pods that are not shown any more.
func (c comebacks) forget(shown map[types.UID]bool) {
	maps.DeleteFunc(c.rounds, func(uid types.UID, _ int) bool { return !shown[uid] })
	maps.DeleteFunc(c.staying, func(uid types.UID, _ Pod) bool { return !shown[uid] })
}

// back lists the pods that came back and stay.
func (c comebacks) back() []Pod {
	return slices.SortedFunc(maps.Values(c.staying), comparePods)
}
