package forecast

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// future is the fleet of one policy as it is imagined at an instant, which moves ahead.
type future struct {
	// Snapshot is what the planner sees. Its policy, with the ledger, and its nodes are the forecast's own.
	plan.Snapshot
	durations Durations
	end       time.Time
	// effort is what is left of it.
	effort int
	// limit is maxUnavailable in nodes.
	limit int

	line line
	// shown are the nodes outside the line that the planner looks at in each round: those that are in flight or unavailable, that
	// back off, or of whose quorum it takes care.
	shown   map[string]*plan.Node
	flights map[string]*flight
	// landed is how many entries of the ledger the next plan releases.
	landed int
	// most is how many flights there were at once.
	most int
	// objections are those of the last plan.
	objections map[string]*plan.Objection
	// reboots are those of the policy, as they start.
	reboots []Reboot
	// conflicts are nodes that need a reboot and that no policy governs because several would.
	conflicts map[string][]string
	// beyond tells that the horizon was reached while somebody still had a turn to wait for.
	beyond bool
}

// imagine begins with what is.
func imagine(s plan.Snapshot, effort Effort) *future {
	s.Nodes = plan.Supposing(s.Policy, s.Nodes)
	u := &future{
		Snapshot: s, durations: Expect(s.Policy), end: s.Now.Add(horizon), effort: int(effort),
		shown: map[string]*plan.Node{}, flights: map[string]*flight{}, conflicts: map[string][]string{},
	}
	u.line = lineOf(plan.Queues(s))
	selected := 0
	for _, n := range s.Nodes {
		g := s.Governor.Govern(n.Labels)
		if g.Policy == s.Policy.Name {
			selected++
		}
		if len(g.Rivals) > 0 && n.NeedsReboot() {
			u.conflicts[n.Name] = g.Rivals
		}
		if n.ControlPlane || n.Outstanding() || n.Failing() || n.Unavailable() && g.Policy == s.Policy.Name {
			u.show(n)
		}
	}
	u.Policy = s.Policy.DeepCopy()
	for _, e := range u.Policy.Status.Grants {
		u.showNamed(s.Nodes, e.Node)
	}
	u.fix(selected)
	u.clearGates()
	u.Nodes, u.Window = nil, window.State{}
	return u
}

// fix makes the policy say in figures what it says of the whole fleet, which the planner does not see; and lets it act.
func (u *future) fix(selected int) {
	u.Policy.Spec.Mode = v1alpha1.ModeEnforce
	limit, err := plan.Limit(u.Policy.Spec.MaxUnavailableOrDefault(), selected)
	if err != nil {
		return
	}
	u.limit = int(limit)
	u.Policy.Spec.Concurrency = &v1alpha1.Concurrency{TopologyKey: u.Policy.Spec.TopologyKey(), MaxUnavailable: new(intstr.FromInt32(limit))}
}

// clearGates takes gates that nobody has asked for clear: they are asked once a node waits for them. What one says now, it is
// taken to say until somebody mends it.
func (u *future) clearGates() {
	u.Gates = slices.Clone(u.Gates)
	for _, g := range u.Policy.Spec.PrometheusGates() {
		if !slices.ContainsFunc(u.Gates, func(said v1alpha1.GateStatus) bool { return said.Name == g.Name }) {
			u.Gates = append(u.Gates, v1alpha1.GateStatus{Name: g.Name, State: v1alpha1.GateClear})
		}
	}
}

// show has the planner look at a node in each round.
func (u *future) show(n *plan.Node) {
	if u.shown[n.Name] == nil {
		copied := *n
		u.shown[n.Name] = &copied
		u.line.leave(n.Name)
	}
}

func (u *future) showNamed(nodes []*plan.Node, name string) {
	if u.shown[name] != nil {
		return
	}
	for _, n := range nodes {
		if n.Name == name {
			u.show(n)
			return
		}
	}
}

// leastRounds are made in any case: what is in flight is known after them, and how many go at once.
const leastRounds = 8

// run plans, imagines what the plan leads to, and goes on to the next instant, until nothing is left that time or other
// nodes change.
func (u *future) run() {
	for round := 0; u.effort > 0 || round < leastRounds; round++ {
		u.land()
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
		u.Now = next
	}
}

// roundEffort is what a plan costs beside its nodes.
const roundEffort = 4

func (u *future) plan() plan.Plan {
	u.look()
	u.Nodes = u.Nodes[:0]
	for _, n := range u.shown {
		u.Nodes = append(u.Nodes, n)
	}
	u.Nodes = append(u.Nodes, u.line.front(u.room(), u.busy())...)
	u.effort -= roundEffort + len(u.Nodes)
	var p plan.Plan
	p, u.objections = plan.Objections(u.Snapshot)
	return p
}

// look brings the state of the windows up to date.
func (u *future) look() {
	if u.Window == (window.State{}) || !u.Window.Next.IsZero() && !u.Now.Before(u.Window.Next) {
		u.Window = u.Schedule.At(u.Now)
	}
}

// room is how many nodes may be granted at once at most.
func (u *future) room() int {
	return max(0, u.limit-len(u.Policy.Status.Grants)+u.landed)
}

// busy are the domains in which nodes are in flight.
func (u *future) busy() map[string]bool {
	busy := map[string]bool{}
	for name := range u.flights {
		busy[plan.Domain(u.Policy, u.shown[name])] = true
	}
	for _, e := range u.Policy.Status.Grants {
		if n := u.shown[e.Node]; n != nil {
			busy[plan.Domain(u.Policy, n)] = true
		}
	}
	return busy
}

// apply imagines what the manager does about a plan. It tells whether the manager would plan again at once.
func (u *future) apply(p plan.Plan) (again bool) {
	status := &u.Policy.Status
	status.Seq, status.Limit, status.Grants, status.History = p.Seq, p.Limit, p.Ledger(), p.History(status.History, u.Now)
	u.landed = 0
	again = len(p.Adopted) > 0 || p.LedgerChanges() && u.room() > 0
	u.halt(p.Halt)
	for _, t := range p.Flights {
		again = u.see(t) || again
	}
	for _, e := range p.Granted {
		u.start(e)
	}
	u.foreign()
	u.most = max(u.most, len(u.flights))
	return again
}

// halt keeps what the planner reads of the condition it wrote.
func (u *future) halt(h plan.Halt) {
	if h.Halted {
		meta.SetStatusCondition(&u.Policy.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionHalted, Status: metav1.ConditionTrue, Reason: string(h.Reason), Message: h.Message,
		})
	}
}

// idle tells whether nothing can be granted any more, as far as the horizon: what is in flight is all there is.
func (u *future) idle(p plan.Plan) bool {
	pause := u.Policy.Spec.Pause
	paused := u.Policy.Spec.PausedAt(u.Now) && pause.End().IsZero()
	return p.Invalid != "" || p.Halt.Halted || paused || !u.Window.Open && u.Window.OpensAt.IsZero()
}

// dismiss takes those out of the line who wait for something that nobody imagines to happen, and those who wait for an hour of
// their own. It tells whether it did: the plan is void then, as there are others behind them. What keeps the whole policy is
// nobody's own.
func (u *future) dismiss(p plan.Plan) bool {
	open := p.Window == v1alpha1.WindowOpen || p.Window == v1alpha1.WindowAlways || p.Window == v1alpha1.WindowUrgent
	dismissed := 0
	for name, o := range u.objections {
		switch {
		case u.shown[name] != nil || o.FallsWithOthers() || o.FallsWithTime() && (!open || o.Reason == v1alpha1.ReasonWindowTooShort):
			continue
		case o.FallsWithTime():
			u.show(u.line.node(name))
		default:
			u.line.park(name)
		}
		dismissed++
	}
	u.line.widen(dismissed)
	return dismissed > 0
}

// next is the next instant at which the answer changes; zero: never.
func (u *future) next(p plan.Plan) time.Time {
	var next time.Time
	for _, t := range u.flights {
		next = timing.Earliest(next, t.EndsAt)
	}
	for _, o := range u.objections {
		if o.FallsWithTime() {
			return timing.Earliest(next, p.Next)
		}
	}
	return next
}
