package forecast

import (
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// future moves a fleet ahead, from plan to plan.
type future struct {
	fleet   *fleet
	reboots reboots
	// end is the horizon.
	end time.Time
	// effort is what is left of it.
	effort int
	// blocked are those of the last plan.
	blocked map[string]*plan.Blocked
	// beyond reports that the horizon was reached while a node still waited for its turn.
	beyond bool
}

func futureOf(s plan.Snapshot, effort Effort) *future {
	f := fleetOf(s)
	return &future{
		fleet: f, reboots: reboots{fleet: f, durations: Expect(s.Policy), current: map[string]current{}},
		end: s.Now.Add(horizon), effort: int(effort),
	}
}

// leastRounds are made in any case: what is in progress is known after them, and how many go at once.
const leastRounds = 8

// run plans, imagines what the plan leads to, and goes on to the next instant, until nothing is left that time or other
// nodes change.
func (u *future) run() {
	for round := 0; u.effort > 0 || round < leastRounds; round++ {
		u.reboots.end()
		p := u.plan()
		idle := u.idle(p)
		if !idle && u.dismiss(p) || u.apply(p) {
			continue
		}
		if idle {
			return
		}
		next := u.next(p)
		if next.IsZero() {
			return
		}
		if u.beyond = next.After(u.end); u.beyond {
			return
		}
		u.fleet.Now = next
	}
}

// roundEffort is what a plan costs beside its nodes.
const roundEffort = 4

func (u *future) plan() plan.Plan {
	u.fleet.see(u.fleet.queues.front(u.fleet.Now, u.reboots.room(), u.reboots.domains()))
	u.effort -= roundEffort + len(u.fleet.Nodes)
	var p plan.Plan
	p, u.blocked = plan.WithBlocked(u.fleet.Snapshot)
	return p
}

// apply imagines what the manager does about a plan. It reports whether the manager would plan again at once.
func (u *future) apply(p plan.Plan) (again bool) {
	u.fleet.write(p)
	u.reboots.ended = 0
	again = len(p.Adopted) > 0 || p.RunMoves || p.LedgerChanges() && u.reboots.room() > 0
	for _, t := range p.Reboots {
		again = u.reboots.follow(t) || again
	}
	for _, e := range p.Granted {
		u.reboots.start(e)
	}
	u.reboots.addForeign()
	u.reboots.most = max(u.reboots.most, len(u.reboots.current))
	return again
}

// idle reports whether nothing can be granted any more, as far as the horizon: what is in progress is all there is.
func (u *future) idle(p plan.Plan) bool {
	w := u.fleet.Window
	spec := &u.fleet.Policy.Spec
	never := !w.Open && w.OpensAt.IsZero() && !spec.Deadline.IgnoresWindows() && !spec.AllowsUrgentRequests()
	return p.Invalid != "" || p.Unshared != "" || p.Halt.Halted || u.fleet.pausedForGood() || never
}

// dismiss takes nodes out of their queues: those that wait for what is not expected to happen, and those that wait for an hour of
// their own. It reports whether there were any: the plan is void then, as other nodes are behind them. What blocks the whole policy
// is no reason to dismiss one node.
func (u *future) dismiss(p plan.Plan) bool {
	open := p.Window == v1alpha1.WindowOpen || p.Window == v1alpha1.WindowAlways || p.Window == v1alpha1.WindowUrgent
	dismissed, f := 0, u.fleet
	for name, o := range u.blocked {
		switch {
		case f.shown[name] != nil || o.FallsWithOthers() || o.FallsWithTime() && (!open || o.Reason == v1alpha1.ReasonWindowTooShort):
			continue
		case o.FallsWithTime():
			f.show(f.queues.node(name))
		default:
			f.strand(name)
		}
		dismissed++
	}
	f.queues.widen(dismissed)
	return dismissed > 0
}

// next is the next instant at which the answer changes; zero: never.
func (u *future) next(p plan.Plan) time.Time {
	next := u.reboots.nextEnd()
	for _, o := range u.blocked {
		if o.FallsWithTime() {
			return timing.Earliest(next, p.Next, u.fleet.queues.nextDue(u.fleet.Now))
		}
	}
	return next
}

// stays are the nodes that are left, and why, by a last plan of all of them at the last instant.
func (u *future) stays() []Stay {
	f := u.fleet
	left := f.queues.rest(true)
	var stays []Stay
	if len(f.shown)+len(left) > 0 {
		f.see(left)
		p, blocked := plan.WithBlocked(f.Snapshot)
		for name, o := range blocked {
			stays = append(stays, Stay{Node: name, Reason: o.Reason, Message: o.Message})
		}
		for _, e := range p.Granted { // the effort ended just before
			u.reboots.started = append(u.reboots.started, u.reboots.expected(e.Node))
		}
		for _, t := range p.Reboots {
			if stuck(t) {
				stays = append(stays, Stay{Node: t.Entry.Node, Reason: t.Reason, Message: t.Message})
			}
		}
	}
	for name, rivals := range f.conflicts {
		if !u.reboots.underWay(name) && !f.holds(name) {
			stays = append(stays, Stay{Node: name, Reason: v1alpha1.ReasonPolicyConflict, Message: plan.ConflictMessage(rivals)})
		}
	}
	slices.SortFunc(stays, byNode)
	return stays
}
