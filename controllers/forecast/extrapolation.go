package forecast

import (
	"maps"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// extrapolate continues the queues where the effort has ended: each of the slots that were used at once goes to the next node
// as it gets free, while a window is open for long enough, one domain after the other. It returns how many nodes it continued.
func (u *future) extrapolate() int {
	if u.effort > 0 || u.beyond {
		return 0
	}
	if u.reboots.most == 0 {
		u.beyond = true
		return 0
	}
	f, r := u.fleet, &u.reboots
	rest, slots, reserve := u.waiting(), r.slots(), plan.Reserve(f.Policy)
	r.started = slices.Grow(r.started, len(rest))
	before, domain := len(r.started), ""
	for i, n := range rest {
		at := later(slots[0], f.Now)
		if is := plan.Domain(f.Policy, n); is != domain && i > 0 {
			at = later(slots[len(slots)-1], at)
		}
		domain = plan.Domain(f.Policy, n)
		if at = f.opening(at, u.end, reserve); at.IsZero() {
			u.beyond = true
			break
		}
		f.Now = at
		r.started = append(r.started, r.expected(n.Name))
		f.queues.leave(n.Name)
		delete(f.shown, n.Name)
		slots = append(slots[1:], r.started[len(r.started)-1].EndsAt)
	}
	r.forget()
	return len(r.started) - before
}

// waiting are those whose turn comes: the queues, and then those that wait for an hour of their own or for their quorum.
func (u *future) waiting() []*plan.Node {
	var rest []*plan.Node
	for _, w := range u.fleet.queues.rest(false) {
		rest = append(rest, w.node)
	}
	for _, name := range slices.Sorted(maps.Keys(u.fleet.shown)) {
		if n := u.fleet.shown[name]; u.goes(n, u.blocked[name]) {
			rest = append(rest, n)
		}
	}
	return rest
}

// goes reports whether a node's turn comes that the last plan looked at.
func (u *future) goes(n *plan.Node, o *plan.Blocked) bool {
	f := u.fleet
	governed := f.Governor.Govern(n.Labels).Policy == f.Policy.Name
	return governed && n.NeedsReboot() && n.Ready && !u.reboots.underWay(n.Name) && !f.holds(n.Name) &&
		(o == nil || o.FallsWithTime() || o.FallsWithOthers())
}

// opening is the first instant from t on at which a reboot may begin; zero: none before the end.
func (f *fleet) opening(t, end time.Time, reserve time.Duration) time.Time {
	if pause := f.Policy.Spec.Pause; pause != nil && pause.Until != nil && f.Policy.Spec.PausedAt(t) {
		t = later(t, pause.Until.Time)
	}
	for !t.IsZero() && t.Before(end) {
		f.Now = t
		f.look()
		switch w := f.Window; {
		case !w.Open:
			t = w.OpensAt
		case w.ClosesAt.IsZero() || !t.Add(reserve).After(w.ClosesAt):
			return t
		default:
			t = w.ClosesAt
		}
	}
	return time.Time{}
}
