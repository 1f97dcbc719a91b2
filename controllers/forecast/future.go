package forecast

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/hours"
	"github.com/reboot-operator/reboot-operator/controllers/plan/queue"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// future advances a fleet from plan to plan.
type future struct {
	fleet   *fleet
	reboots reboots
	// end is the horizon.
	end time.Time
	// effort is the remaining effort.
	effort int
	// blocked are the blocked nodes of the last plan.
	blocked map[string]*plan.Blocked
	// beyond reports whether the horizon was reached while a node still waited for its turn.
	beyond bool
}

func futureOf(s plan.Snapshot, effort Effort) *future {
	f := fleetOf(s)
	return &future{
		fleet: f, reboots: reboots{fleet: f, durations: Expect(s.Policy), current: map[string]current{}},
		end: s.Now.Add(horizon), effort: int(effort),
	}
}

// leastRounds is the smallest number of rounds. They are enough to know the current reboots and how
// many run at once.
const leastRounds = 8

// run repeats two steps: it applies a plan, and advances to the next instant. It stops when neither
// the time nor other nodes can change anything.
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

// roundEffort is the cost of a plan in addition to its nodes.
const roundEffort = 4

func (u *future) plan() plan.Plan {
	u.fleet.see(u.fleet.queues.front(u.fleet.Now, u.reboots.room(), u.reboots.domains()))
	u.effort -= roundEffort + len(u.fleet.Nodes)
	var p plan.Plan
	p, u.blocked = plan.WithBlocked(u.fleet.Snapshot)
	return p
}

// apply applies a plan as the manager would. It reports whether the manager would plan again at
// once.
func (u *future) apply(p plan.Plan) (again bool) {
	u.fleet.write(p)
	u.reboots.ended = 0
	again = len(p.Ledger.Adopted) > 0 || p.RunMoves || p.Ledger.Changed() && u.reboots.room() > 0
	for _, t := range p.Reboots {
		again = u.reboots.follow(t) || again
	}
	for _, e := range p.Ledger.Granted {
		u.reboots.start(e)
	}
	u.reboots.addForeign()
	u.reboots.most = max(u.reboots.most, len(u.reboots.current))
	return again
}

// idle reports whether nothing can be granted any more within the horizon, so that only the current
// reboots remain.
func (u *future) idle(p plan.Plan) bool {
	w := u.fleet.Window
	const windows = v1alpha1.UrgentIgnoresWindows
	urgent := u.fleet.Policy.Spec.UrgentOrDefault()
	never := !w.Open && w.OpensAt.IsZero() && !urgent.Overdue.Ignores(windows) && !urgent.Requested.Ignores(windows)
	return p.Invalid != nil || p.Halt.Halted || u.fleet.pausedForGood() || never
}

// dismiss removes nodes from their queues that wait for something that is not expected to happen,
// or for their own hours. It reports whether there were any, because the plan is then invalid:
// other nodes were behind them. A reason that blocks the whole policy does not dismiss single
// nodes.
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

// next returns the next instant at which the answer changes, or zero.
func (u *future) next(p plan.Plan) time.Time {
	next := u.reboots.nextEnd()
	for _, o := range u.blocked {
		if o.FallsWithTime() {
			return timing.Earliest(next, p.Next, u.fleet.queues.nextDue(u.fleet.Now))
		}
	}
	return next
}

// stays returns the remaining nodes with their reasons, from a last plan of all of them at the last
// instant.
func (u *future) stays() []Stay {
	f := u.fleet
	remaining := f.queues.rest(true)
	var stays []Stay
	if len(f.shown)+len(remaining) > 0 {
		f.see(remaining)
		p, blocked := plan.WithBlocked(f.Snapshot)
		for name, o := range blocked {
			message := o.Message
			if o.Reason == v1alpha1.ReasonBudgetExhausted && p.Holders != "" {
				message += "; unavailable: " + p.Holders
			}
			stays = append(stays, Stay{Node: name, Reason: o.Reason, Message: message})
		}
		for _, e := range p.Ledger.Granted { // granted because the effort had ended just before
			u.reboots.started = append(u.reboots.started, u.reboots.expected(e.Node))
		}
		for _, t := range p.Reboots {
			if stuck(t, f.Now) {
				stays = append(stays, Stay{Node: t.Entry.Node, Reason: t.Reason, Message: t.Message})
			}
		}
	}
	for name, rivals := range f.conflicts {
		if !u.reboots.underWay(name) && !f.holds(name) {
			stays = append(stays, Stay{Node: name, Reason: v1alpha1.ReasonPolicyConflict, Message: governor.ConflictMessage(rivals)})
		}
	}
	slices.SortFunc(stays, func(a, b Stay) int { return cmp.Compare(a.Node, b.Node) })
	return stays
}

// extrapolate continues the queues after the effort is used up, one domain and one ring after the
// other. Each slot that was in use goes to the next node when it becomes free,
// spec.concurrency.spacing is over, and a window is open for long enough. It returns the number of
// nodes that it continued.
func (u *future) extrapolate() int {
	if u.effort > 0 || u.beyond {
		return 0
	}
	if u.reboots.most == 0 {
		u.beyond = true
		return 0
	}
	f, r := u.fleet, &u.reboots
	rest, slots, reserve := u.waiting(), r.slots(), hours.Reserve(f.Policy)
	r.started = slices.Grow(r.started, len(rest))
	before, domain, ring := len(r.started), "", 0
	if len(rest) > 0 {
		f.Now, ring = u.afterRings(rest[0]), f.rings.Of(rest[0])
	}
	for i, n := range rest {
		t := timing.Latest(slots[0], f.Now)
		if limit := int(f.ofRings[f.rings.Of(n)]); 0 < limit && limit < len(slots) {
			t = timing.Latest(slots[len(slots)-limit], t)
		}
		if other := queue.Domain(f.Policy, n); other != domain && i > 0 {
			t = timing.Latest(slots[len(slots)-1], t)
		}
		if other := f.rings.Of(n); other != ring {
			t = timing.Latest(slots[len(slots)-1], f.Now).Add(f.rings.Soak(ring))
		}
		domain, ring = queue.Domain(f.Policy, n), f.rings.Of(n)
		if t = f.start(n, t, u.end, slots, reserve); t.IsZero() {
			u.beyond = !f.pausedForGood()
			break
		}
		f.Now = t
		r.started = append(r.started, r.expected(n.Name))
		f.queues.leave(n.Name)
		delete(f.shown, n.Name)
		slots = append(slots[1:], r.started[len(r.started)-1].EndsAt)
	}
	r.forget()
	return len(r.started) - before
}

// afterRings returns the earliest time at which the node may start because of earlier rings: their
// current reboots must be done and have soaked.
func (u *future) afterRings(n *record.Node) time.Time {
	f, instant := u.fleet, u.fleet.Now
	ring := f.rings.Of(n)
	for _, other := range f.shown {
		if earlier := f.rings.Of(other); earlier < ring && other.Grant != nil && other.Grant.State == protocol.GrantFinished && !other.Paused(f.Now) {
			instant = timing.Latest(instant, other.Grant.At.Add(f.rings.Soak(earlier)))
		}
	}
	for name, t := range u.reboots.current {
		if earlier := f.rings.Of(f.shown[name]); earlier < ring {
			instant = timing.Latest(instant, t.EndsAt.Add(f.rings.Soak(earlier)))
		}
	}
	return instant
}

// waiting returns the nodes whose turn will come: first the queues, and then the nodes that wait
// for their own hours or their quorum.
func (u *future) waiting() []*record.Node {
	rest := u.fleet.queues.rest(false)
	for _, name := range slices.Sorted(maps.Keys(u.fleet.shown)) {
		if n := u.fleet.shown[name]; u.goes(n, u.blocked[name]) {
			rest = append(rest, n)
		}
	}
	rings, stranded := u.fleet.rings, u.strandedIn()
	slices.SortStableFunc(rest, func(a, b *record.Node) int { return cmp.Compare(rings.Of(a), rings.Of(b)) })
	if i := slices.IndexFunc(rest, func(n *record.Node) bool { return rings.Of(n) > stranded }); i >= 0 {
		return rest[:i]
	}
	return rest
}

// strandedIn returns the first ring with a node that waits for a person and that later rings wait
// for.
func (u *future) strandedIn() int {
	first := len(u.fleet.Policy.Spec.Rings)
	for ring := range u.fleet.stranded {
		first = min(first, ring)
	}
	for name, n := range u.fleet.shown {
		if o := u.blocked[name]; o != nil && !n.Paused(u.fleet.Now) && !u.goes(n, o) {
			first = min(first, u.fleet.rings.Of(n))
		}
	}
	return first
}

// goes reports whether the turn of a node that the last plan saw will come.
func (u *future) goes(n *record.Node, o *plan.Blocked) bool {
	f := u.fleet
	governed := f.Governor.Govern(n).Policy == f.Policy.Name
	return governed && n.NeedsReboot() && n.Ready && !u.reboots.underWay(n.Name) && !f.holds(n.Name) &&
		(o == nil || o.FallsWithTime() || o.FallsWithOthers())
}

// start returns the first instant from t on at which the reboot of a node may begin: opening allows
// it, and spec.concurrency.spacing has passed since the last end. ends are the known ends, in
// order.
func (f *fleet) start(n *record.Node, t, end time.Time, ends []time.Time, reserve time.Duration) time.Time {
	spacing := f.Policy.Spec.Spacing()
	for {
		instant := f.opening(n, t, end, reserve)
		if instant.IsZero() || spacing == 0 {
			return instant
		}
		t = timing.Latest(instant, record.LastReboot(f.Policy, f.Now).Add(spacing))
		for _, back := range ends {
			if !back.After(t) {
				t = timing.Latest(t, back.Add(spacing))
			}
		}
		if t.Equal(instant) {
			return instant
		}
	}
}

// opening returns the first instant from t on at which windows and pauses allow the reboot of a
// node to begin, or zero if it is not before the end.
func (f *fleet) opening(n *record.Node, t, end time.Time, reserve time.Duration) time.Time {
	windows, blackouts := record.IgnoredFrom(f.Policy, n, v1alpha1.UrgentIgnoresWindows), record.IgnoredFrom(f.Policy, n, v1alpha1.UrgentIgnoresBlackouts)
	for !t.IsZero() && t.Before(end) {
		f.Now = t
		if f.Policy.Spec.PausedAt(t) { // spec.urgent.all may have ignored the pause so far
			t = f.Policy.Spec.Pause.End()
			continue
		}
		f.look()
		reached := func(from time.Time) bool { return !from.IsZero() && !t.Before(from) }
		switch w := f.Window; {
		case w.Blackout && reached(windows) && !reached(blackouts):
			t = timing.Earliest(w.Next, blackouts)
		case reached(windows):
			return t
		case !w.Open:
			t = timing.Earliest(w.OpensAt, windows)
		case w.ClosesAt.IsZero() || !t.Add(reserve).After(w.ClosesAt):
			return t
		default:
			t = timing.Earliest(w.ClosesAt, windows)
		}
	}
	return time.Time{}
}
