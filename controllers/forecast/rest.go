package forecast

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// extrapolate continues the line where the effort has ended: each of the places that were used at once goes to the next node
// as it gets free, while a window is open for long enough, one domain after the other. It tells how many nodes it continued.
func (u *future) extrapolate() int {
	if u.effort > 0 || u.beyond {
		return 0
	}
	if u.most == 0 {
		u.beyond = true
		return 0
	}
	rest, places, reserve := u.waiting(), u.places(), plan.Reserve(u.Policy)
	u.reboots = slices.Grow(u.reboots, len(rest))
	before, domain := len(u.reboots), ""
	for i, n := range rest {
		at := later(places[0], u.Now)
		if is := plan.Domain(u.Policy, n); is != domain && i > 0 {
			at = later(places[len(places)-1], at)
		}
		domain = plan.Domain(u.Policy, n)
		if at = u.opening(at, reserve); at.IsZero() {
			u.beyond = true
			break
		}
		u.Now = at
		u.reboots = append(u.reboots, u.expected(n.Name))
		u.line.leave(n.Name)
		delete(u.shown, n.Name)
		places = append(places[1:], u.reboots[len(u.reboots)-1].EndsAt)
	}
	u.forget()
	return len(u.reboots) - before
}

// forget takes those in flight out of the picture: what becomes of them is told.
func (u *future) forget() {
	u.Policy.Status.Grants = slices.DeleteFunc(u.Policy.Status.Grants, func(e v1alpha1.LedgerEntry) bool { return u.flights[e.Node] != nil })
	for name := range u.flights {
		delete(u.shown, name)
	}
	clear(u.flights)
}

// waiting are those whose turn comes: the line, and then those who wait for an hour of their own or for their quorum.
func (u *future) waiting() []*plan.Node {
	var rest []*plan.Node
	for _, w := range u.line.rest(false) {
		rest = append(rest, w.node)
	}
	for _, name := range slices.Sorted(maps.Keys(u.shown)) {
		if n := u.shown[name]; u.goes(n, u.objections[name]) {
			rest = append(rest, n)
		}
	}
	return rest
}

// goes tells whether a node's turn comes that the last plan looked at.
func (u *future) goes(n *plan.Node, o *plan.Objection) bool {
	governed := u.Governor.Govern(n.Labels).Policy == u.Policy.Name
	return governed && n.NeedsReboot() && n.Ready && u.flights[n.Name] == nil && !holds(u.Policy, n.Name) &&
		(o == nil || o.FallsWithTime() || o.FallsWithOthers())
}

// places are when each of the places that were used at once is free, the first first.
func (u *future) places() []time.Time {
	places := make([]time.Time, 0, max(u.most, 1))
	for _, t := range u.flights {
		places = append(places, t.EndsAt)
	}
	for len(places) < max(u.most, 1) {
		places = append(places, u.Now)
	}
	slices.SortFunc(places, time.Time.Compare)
	return places
}

// opening is the first instant from t on at which a reboot may begin; zero: none before the horizon.
func (u *future) opening(t time.Time, reserve time.Duration) time.Time {
	if pause := u.Policy.Spec.Pause; pause != nil && pause.Until != nil && u.Policy.Spec.PausedAt(t) {
		t = later(t, pause.Until.Time)
	}
	for !t.IsZero() && t.Before(u.end) {
		u.Now = t
		u.look()
		switch w := u.Window; {
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

// stays are the nodes that are left, and why. The planner says it of all of them at once, at the last instant.
func (u *future) stays() []Stay {
	u.Nodes = u.Nodes[:0]
	for _, n := range u.shown {
		u.Nodes = append(u.Nodes, n)
	}
	for _, w := range u.line.rest(true) {
		u.Nodes = append(u.Nodes, w.node)
	}
	var stays []Stay
	if len(u.Nodes) > 0 {
		u.look()
		p, objections := plan.Objections(u.Snapshot)
		for name, o := range objections {
			stays = append(stays, Stay{Node: name, Reason: o.Reason, Message: o.Message})
		}
		for _, e := range p.Granted { // the effort ended just before
			u.reboots = append(u.reboots, u.expected(e.Node))
		}
		for _, t := range p.Flights {
			if stuck(t) {
				stays = append(stays, Stay{Node: t.Entry.Node, Reason: t.Reason, Message: t.Message})
			}
		}
	}
	for name, rivals := range u.conflicts {
		if slices.Contains(rivals, u.Policy.Name) && u.flights[name] == nil && !holds(u.Policy, name) {
			stays = append(stays, Stay{Node: name, Reason: v1alpha1.ReasonPolicyConflict, Message: fmt.Sprintf(
				"policies %s select the node with the same priority; raise spec.priority of one", strings.Join(rivals, ", "))})
		}
	}
	slices.SortFunc(stays, byNode)
	return stays
}
