package drain

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// parallel is the largest number of requests under way: enough to be fast, too few to be a burst.
const parallel = 10

// order returns the lowest order that still has pods on the node. These pods are next.
func (p *progress) order() int32 {
	first, lowest := true, int32(0)
	for _, e := range p.going {
		if first || e.decision.order < lowest {
			first, lowest = false, e.decision.order
		}
	}
	return lowest
}

// next returns the pods to send a request for now, and the time to run again, or zero if only a
// change can bring news.
func (p *progress) next(now time.Time) (send []target, wake time.Time) {
	if len(p.going) == 0 {
		return nil, p.asking.patience(now)
	}
	var ready []*podState
	order, free := p.order(), parallel-len(p.asking)
	for uid, e := range p.going {
		if stuck := e.deleted.Add(stuckAfter); !e.deleted.IsZero() && stuck.After(now) {
			wake = timing.Earliest(wake, stuck)
		}
		switch {
		case p.asking.has(uid) || e.waits() || e.decision.order != order:
		case e.due.After(now):
			wake = timing.Earliest(wake, e.due)
		default:
			ready = append(ready, e)
		}
	}
	// Those that have waited longest come first. Pods without a request so far have the zero time.
	slices.SortFunc(ready, func(a, b *podState) int {
		return cmp.Or(a.due.Compare(b.due), byName(a, b))
	})
	for _, e := range ready[:min(len(ready), max(free, 0))] {
		send = append(send, e.target)
	}
	return send, wake
}

// budgetChanged records a budget and wakes the pods that it frees: those that it does not cover any
// more, and as many of the others as it allows. If it allows nothing, the pods are requested again
// when it changes or, as a fallback, half a minute after its last change.
func (p *progress) budgetChanged(name types.NamespacedName, next budget, now time.Time) {
	next, old := p.budgets.set(name, next)
	for _, e := range p.going {
		if p.asking.has(e.uid) || !e.held() || e.Namespace != name.Namespace {
			continue
		}
		switch {
		case old.covers(e.target) && !next.covers(e.target), next.allowed == 0 && old.refuses(e) && !next.refuses(e):
			e.due = now
		case e.answer == refused && e.ready && next.refuses(e):
			e.due = now.Add(lastDelay)
		}
	}
	p.wake(name.Namespace, next, now)
}

// wake schedules requests for pods that the budget blocked. Their number is the number of allowed
// disruptions minus the pods that have used one since, or may use one, because more requests would
// be refused. A pod that was evicted before does not need a disruption any more, even if it takes
// long to leave.
func (p *progress) wake(namespace string, b budget, now time.Time) {
	room, order := b.allowed-p.taken(namespace, b), p.order()
	for _, e := range p.sorted() {
		if room <= 0 {
			return
		}
		if p.asking.has(e.uid) || e.waits() || e.decision.order != order || e.Namespace != namespace {
			continue
		}
		if e.answer == refused && e.sentAt < b.changed && b.covers(e.target) {
			e.due = now
			room--
		}
	}
}

// passOn wakes other pods if a pod was woken for a disruption of a budget and did not use it.
func (p *progress) passOn(e *podState, now time.Time) {
	for _, name := range p.budgets.covering(e.target) {
		p.wake(name.Namespace, p.budgets.known[name], now)
	}
}

// taken counts the pods that have used disruptions of the budget since its last change, and those
// that may because a request is under way.
func (p *progress) taken(namespace string, b budget) int {
	n := 0
	for uid, e := range p.going {
		if (p.asking.has(uid) || e.accepted && e.sentAt >= b.changed) && e.Namespace == namespace && b.covers(e.target) {
			n++
		}
	}
	return n
}
