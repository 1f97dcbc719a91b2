package drain

import (
	"cmp"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// parallel is how many requests are under way at most: enough to be quick, too few to be a burst.
const parallel = 10

// order is the lowest order that still has pods on the node: the one whose turn it is.
func (p *progress) order() int32 {
	first, lowest := true, int32(0)
	for _, e := range p.entries {
		if first || e.decision.order < lowest {
			first, lowest = false, e.decision.order
		}
	}
	return lowest
}

// next states which pods to send a request for now, and when to look again. A zero wake means not before something changes.
func (p *progress) next(now time.Time) (send []target, wake time.Time) {
	if len(p.entries) == 0 {
		return nil, p.asking.patience(now)
	}
	var ready []*podState
	order, free := p.order(), parallel-len(p.asking)
	for uid, e := range p.entries {
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
	// First those that have waited longest; those never asked for have the zero time.
	slices.SortFunc(ready, func(a, b *podState) int {
		return cmp.Or(a.due.Compare(b.due), byName(a, b))
	})
	for _, e := range ready[:min(len(ready), max(free, 0))] {
		send = append(send, e.target)
	}
	return send, wake
}
