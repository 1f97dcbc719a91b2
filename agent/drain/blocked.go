package drain

import (
	"fmt"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const (
	// stuckAfter is how long after its grace period a pod is called stuck: time for the kubelet to clean up, and for clocks
	// that differ.
	stuckAfter = 30 * time.Second
	// failuresHidden is how many failures in a row are nobody's business yet.
	failuresHidden = 2
)

// status is the drain as others see it.
func (p *progress) status(now time.Time) Status {
	entries := p.sorted()
	s := Status{
		Remaining: len(entries), Evicted: p.left, Deleted: len(p.deleted), Volumes: p.staying.list(), Left: left(entries),
		Back: p.comebacks.back(), Unread: p.unread,
	}
	for _, e := range entries {
		if p.deleted[e.uid] {
			s.Deleting++
		}
		if pod, blocked := p.blocked(e, now); blocked {
			s.Blocked = append(s.Blocked, pod)
		}
	}
	return s
}

// left lists the pods that must go. Those that end last come first: nobody is in their way, and yet the drain may be too long.
func left(entries []*podState) []Pod {
	pods := make([]Pod, 0, len(entries))
	last := func(a, b *podState) int { return b.deleted.Compare(a.deleted) }
	for _, e := range slices.SortedStableFunc(slices.Values(entries), last) {
		message := ""
		if !e.deleted.IsZero() {
			message = "terminating until " + e.deleted.UTC().Format(time.RFC3339)
		}
		pods = append(pods, e.pod("", message))
	}
	return pods
}

// blocked reports whether the pod is in the way by itself, not just in the middle of going.
func (p *progress) blocked(e *podState, now time.Time) (Pod, bool) {
	switch {
	case !e.deleted.IsZero():
		return e.pod(ReasonStuckTerminating, fmt.Sprintf("still there after its grace period, which ended at %s",
			e.deleted.UTC().Format(time.RFC3339))), !now.Before(e.deleted.Add(stuckAfter))
	case e.decision.undrainable != "":
		return e.pod(string(v1alpha1.ReasonUndrainablePod), e.decision.undrainable), true
	case e.decision.action == v1alpha1.DrainWaitCompleted:
		return e.pod(string(v1alpha1.DrainWaitCompleted), "a rule waits until it has completed"), true
	case e.accepted:
		return Pod{}, false
	case e.refusal == bySeveralBudgets:
		pod := e.pod(v1alpha1.EventEvictionBlocked, crowdedMessage(p.budgets.of(e.target)))
		pod.Budgets = p.budgets.of(e.target)
		return pod, true
	default:
		shown := e.refusal == byBudget || e.attempts > failuresHidden
		pod := e.pod(v1alpha1.EventEvictionBlocked, e.message)
		if e.refusal == byBudget {
			pod.Budgets = p.budgets.of(e.target)
		}
		return pod, shown
	}
}

// undrainable lists the pods that the policy never lets go.
func (p *progress) undrainable() []Pod {
	var pods []Pod
	for _, e := range p.sorted() {
		if e.decision.undrainable != "" {
			pods = append(pods, e.pod(string(v1alpha1.ReasonUndrainablePod), e.decision.undrainable))
		}
	}
	return pods
}

// findings is what a look at the pods has found.
func (p *progress) findings() Findings {
	f := Findings{Kept: p.undrainable(), Blocking: p.blocking.list("")}
	for _, e := range p.sorted() {
		if why := p.budgets.guard(e); why != "" {
			f.Guarded = append(f.Guarded, e.pod(string(v1alpha1.ReasonUndrainablePod), why))
		}
	}
	return f
}
