// Package forecast estimates when each node will be rebooted, and when all are done. It runs the
// planner of controllers/plan forward. A reboot that a plan grants takes as long as the policy's
// reboots have taken so far. The planner runs again for the next instant at which anything changes.
//
// It is an estimate, not a promise. It cannot know which nodes will need a reboot tomorrow, which
// drain will hang, or when a person ends a pause. Nodes that wait for a person or for another
// system are not rebooted in the forecast. They are listed separately.
//
// The planner sees the smallest fleet that gives the same answer: no nodes that are done, and only
// the first of each queue. So a fleet of thousands costs about as many short plans as there are
// reboots in sequence. If even that exceeds the caller's effort, the rest of the queues is
// extrapolated.
package forecast

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	"github.com/reboot-operator/reboot-operator/controllers/plan/hours"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Forecast describes what one policy is expected to do from one instant on.
type Forecast struct {
	Policy string `json:"policy"`
	// At is the instant at which the forecast begins.
	At time.Time `json:"at"`
	// DryRun reports whether the policy is in dry-run mode. The forecast then shows what it would
	// do.
	DryRun    bool      `json:"dryRun,omitempty"`
	Durations Durations `json:"durations"`
	// Reboots are the current and the expected reboots, in the order in which they start.
	Reboots []Expected `json:"reboots"`
	// Stays are the nodes that need a reboot but are not rebooted until somebody acts, by name.
	Stays []Stay `json:"stays,omitempty"`
	// Due are the nodes that will need a reboot within a year because of their uptime, in the order
	// in which they become due.
	Due []Due `json:"due,omitempty"`
	// CompletionAt is the time when the last of Reboots is back in service. It is zero without
	// reboots, or if Unknown gives a reason.
	CompletionAt time.Time `json:"completionAt,omitzero"`
	// Unknown says why the completion time is unknown. It is empty if it is known, or if no reboot
	// is needed.
	Unknown string `json:"unknown,omitempty"`
	// Window is the window that is open or opens next. It is nil if the policy is always open, or
	// never.
	Window *Window `json:"window,omitempty"`
	// FinishesInWindow reports whether all Reboots end before that window closes.
	FinishesInWindow bool `json:"finishesInWindow"`
	// MissesDeadline are the nodes, by name, that will not be back in service before their
	// spec.deadline ends, or have missed it.
	MissesDeadline []string `json:"missesDeadline,omitempty"`
	// Extrapolated is the number of the last Reboots that are estimated from the pace of the ones
	// before. It is 0 if every reboot comes from a plan.
	Extrapolated int `json:"extrapolated,omitempty"`
}

// Expected is a current or expected reboot. Past times are as they happened, and later ones as
// expected.
type Expected struct {
	Node string `json:"node"`
	// StartsAt is the time of the grant, DrainsAt the start of the drain, and RebootsAt the time
	// when the host goes down. At SettlesAt it is up and its agent has reported, and at EndsAt the
	// node is back in service.
	StartsAt  time.Time `json:"startsAt"`
	DrainsAt  time.Time `json:"drainsAt"`
	RebootsAt time.Time `json:"rebootsAt"`
	SettlesAt time.Time `json:"settlesAt"`
	EndsAt    time.Time `json:"endsAt"`
	// Window is the window in which it starts, and ClosesAt the time when that closes. Both are
	// empty for a current reboot, or without windows.
	Window   string    `json:"window,omitempty"`
	ClosesAt time.Time `json:"closesAt,omitzero"`
	// InProgress reports whether it has been granted.
	InProgress bool `json:"inProgress,omitempty"`
}

// Overruns reports whether the node is back in service only after the window in which its reboot
// starts has closed.
func (e Expected) Overruns() bool { return !e.ClosesAt.IsZero() && e.EndsAt.After(e.ClosesAt) }

// Stay is a node that needs a reboot and is not rebooted in the forecast.
type Stay struct {
	Node string `json:"node"`
	// Reason and Message come from the planner, once everything else that the node waits for is
	// over.
	Reason  v1alpha1.Reason `json:"reason"`
	Message string          `json:"message"`
}

// Due is a node that will need a reboot because of its uptime.
type Due struct {
	Node string `json:"node"`
	// At is the time when it reaches its longest permitted uptime. From then on it waits for its
	// turn like any other node.
	At time.Time `json:"at"`
}

// Window is the next period in which reboots may start.
type Window struct {
	// Name is the name of the first open window. It is empty if the policy has only blackouts.
	Name string `json:"name,omitempty"`
	// OpensAt is the time when it opens, or zero if it is open.
	OpensAt time.Time `json:"opensAt,omitzero"`
	// ClosesAt is the time when it closes, or zero if that is more than 400 days ahead.
	ClosesAt time.Time `json:"closesAt,omitzero"`
}

// Durations are the expected durations of the phases of a reboot.
type Durations struct {
	// Before is the time from the grant to the drain, which the before-hooks take. It is zero until
	// a reboot has been measured.
	Before metav1.Duration `json:"before"`
	// Drain is the time from the cordon to the point of no return, and at least drain.leadTime.
	Drain  metav1.Duration `json:"drain"`
	Reboot metav1.Duration `json:"reboot"`
	// Settle is the time from the agent's first report until the node is back in service, including
	// the after-hooks. It is at least reboot.settle.
	Settle metav1.Duration `json:"settle"`
	// Measured is the number of reboots in status.history from which the medians were computed. It
	// is 0 if the durations are assumed.
	Measured int `json:"measured"`
}

// Effort limits the work of one forecast, as the number of nodes that the planner sees in all
// rounds together. The rest is extrapolated.
type Effort int

const (
	// Quick is for callers that block others. It takes about 30 ms, or 50 ms with 15,000 nodes.
	Quick Effort = 8_000
	// Thorough is for people who wait for the answer. It takes at most a few seconds, and much less
	// for most fleets.
	Thorough Effort = 1_000_000
)

// horizon is the time covered by a forecast.
const horizon = 365 * 24 * time.Hour

// Of returns the forecast for a snapshot.
func Of(s plan.Snapshot, effort Effort) Forecast {
	u := futureOf(s, effort)
	u.run()
	f := Forecast{
		Policy: s.Policy.Name, At: s.Now, DryRun: s.Policy.Spec.ModeOrDefault() == v1alpha1.ModeDryRun, Durations: u.reboots.durations,
	}
	f.Extrapolated = u.extrapolate()
	f.Stays = u.stays()
	f.Due = due(s, u.end)
	f.Reboots = slices.Clip(u.reboots.started)
	for _, r := range f.Reboots {
		f.CompletionAt = timing.Latest(f.CompletionAt, r.EndsAt)
	}
	switch {
	case u.beyond:
		f.CompletionAt, f.Unknown = time.Time{}, "not every node has had its turn within a year"
	case len(f.Reboots) == 0 && len(f.Stays) > 0:
		f.Unknown = foremost(f.Stays)
	}
	f.Window, f.MissesDeadline = upcoming(s.Schedule, s.Now), missing(s, f.Reboots)
	f.FinishesInWindow = !f.CompletionAt.IsZero() && (f.Window == nil || f.Window.ClosesAt.IsZero() || !f.CompletionAt.After(f.Window.ClosesAt))
	return f
}

// Doubts returns the pods with closed budgets on the nodes that are still to be drained, by node.
// Their drains may fail.
func (f Forecast) Doubts(s plan.Snapshot) map[string]string {
	toCome := map[string]bool{}
	for _, r := range f.Reboots {
		toCome[r.Node] = !r.InProgress
	}
	doubts, found := map[string]string{}, gates.PodsOf(s.Policy)
	for _, n := range s.Nodes {
		if pods := found.Closed(n); pods != "" && toCome[n.Name] {
			doubts[n.Name] = pods
		}
	}
	return doubts
}

// missing returns the nodes of the policy that need a reboot but do not have one that ends before
// their deadline.
func missing(s plan.Snapshot, reboots []Expected) []string {
	if s.Policy.Spec.Deadline == nil {
		return nil
	}
	back := make(map[string]time.Time, len(reboots))
	for _, r := range reboots {
		back[r.Node] = r.EndsAt
	}
	var names []string
	for _, n := range s.Nodes {
		due := record.DueAt(s.Policy, n)
		if due.IsZero() || s.Governor.Govern(n).Policy != s.Policy.Name {
			continue
		}
		if t, ok := back[n.Name]; !ok || t.After(due) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// upcoming returns the window that is open or opens next.
func upcoming(schedule window.Schedule, now time.Time) *Window {
	state, w := schedule.At(now), Window{}
	if !state.Open {
		if w.OpensAt = state.OpensAt; w.OpensAt.IsZero() {
			return nil
		}
		state = schedule.At(w.OpensAt)
	}
	if w.Name, w.ClosesAt = state.Name, state.ClosesAt; w == (Window{}) {
		return nil
	}
	return &w
}

// foremost returns the most common reason of the nodes that stay, with the message of the first
// one. Nodes that wait for their turn do not count, because they wait for the others.
func foremost(stays []Stay) string {
	count := map[v1alpha1.Reason]int{}
	most := stays[0]
	for _, s := range stays {
		count[s.Reason]++
	}
	count[v1alpha1.ReasonBudgetExhausted] = 0
	for _, s := range stays {
		if count[s.Reason] > count[most.Reason] {
			most = s
		}
	}
	return string(most.Reason) + ": " + most.Message
}

// due returns the nodes of the policy that become due by their uptime before an instant. A node
// that has reached its limit is due now, even if its agent has not reported that yet.
func due(s plan.Snapshot, end time.Time) []Due {
	var all []Due
	for _, n := range s.Nodes {
		most, booted := protocol.ParseMaxUptime(n.Annotations), v1alpha1.BootedAt(n.Annotations)
		t := timing.Latest(booted.Add(most), s.Now)
		if most == 0 || booted.IsZero() || t.After(end) || n.NeedsReboot() || n.Outstanding() {
			continue
		}
		if s.Governor.Govern(n).Policy == s.Policy.Name {
			all = append(all, Due{Node: n.Name, At: t})
		}
	}
	slices.SortFunc(all, func(a, b Due) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Node, b.Node)) })
	return all
}

// The assumed durations of drain and reboot until the policy has measured one.
const (
	assumedDrain  = 2 * time.Minute
	assumedReboot = hours.AssumedReboot - assumedDrain
)

// Expect returns the median duration of each phase over the policy's reboots. Until one has
// succeeded, it returns the plan's assumptions: drain.leadTime plus two minutes for the drain,
// three minutes for the reboot, and reboot.settle.
func Expect(policy *v1alpha1.RebootPolicy) Durations {
	lead := policy.Spec.DrainOrDefault().LeadTimeOrDefault()
	d := Durations{
		Drain: metav1.Duration{Duration: lead + assumedDrain}, Reboot: metav1.Duration{Duration: assumedReboot},
		Settle: metav1.Duration{Duration: policy.Spec.RebootOrDefault().SettleOrDefault()},
	}
	var before, drain, reboot, settle []time.Duration
	for _, past := range policy.Status.History {
		if past.Result != v1alpha1.RebootSucceeded || past.Drain == nil || past.Reboot == nil || past.Settle == nil {
			continue
		}
		drain, reboot, settle = append(drain, past.Drain.Duration), append(reboot, past.Reboot.Duration), append(settle, past.Settle.Duration)
		known := past.Drain.Duration + past.Reboot.Duration + past.Settle.Duration
		before = append(before, max(0, past.EndedAt.Sub(past.GrantedAt.Time)-known))
	}
	if d.Measured = len(drain); d.Measured > 0 {
		d.Before.Duration, d.Drain.Duration, d.Reboot.Duration = median(before), max(lead, median(drain)), median(reboot)
		d.Settle.Duration = max(d.Settle.Duration, median(settle))
	}
	return d
}

// median returns the median, which is the lower of the two middle values for an even number.
func median(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[(len(took)-1)/2]
}

// underWay returns a reboot that was granted earlier, with its past times as they happened and the
// rest as expected from now on.
func (d Durations) underWay(n *record.Node, granted, now time.Time) Expected {
	p := n.Progress
	granted = timing.Earliest(granted, now) // a node's clock may be ahead
	r := Expected{Node: n.Name, InProgress: true, StartsAt: granted, DrainsAt: timing.Latest(granted.Add(d.Before.Duration), now)}
	r.RebootsAt = timing.Latest(r.DrainsAt.Add(d.Drain.Duration), now)
	r.SettlesAt = timing.Latest(r.RebootsAt.Add(d.Reboot.Duration), now)
	switch {
	case p == nil || p.Phase == protocol.PhaseAborted:
	case p.Phase == protocol.PhaseDraining:
		r.DrainsAt = timing.Earliest(p.At.Time, now)
		r.RebootsAt = timing.Latest(r.DrainsAt.Add(d.Drain.Duration), now)
		r.SettlesAt = r.RebootsAt.Add(d.Reboot.Duration)
	default:
		r.RebootsAt = timing.Earliest(p.At.Time, now)
		r.DrainsAt, r.SettlesAt = r.RebootsAt, timing.Latest(r.RebootsAt.Add(d.Reboot.Duration), now)
		if p.DrainStartedAt != nil {
			r.DrainsAt = timing.Earliest(p.DrainStartedAt.Time, r.RebootsAt)
		}
		if n.BootID != "" && p.HasBooted(n.BootID) && n.Ready && !n.Maintenance {
			r.SettlesAt = timing.Earliest(timing.Latest(n.ReadySince, n.MaintenanceSince), now)
			if noted := n.Hooks; noted != nil && noted.TakesPods != nil && *noted.TakesPods {
				r.SettlesAt = timing.Earliest(timing.Latest(r.SettlesAt, noted.At.Time), now)
			}
			if record.StartupTaint(n) != "" {
				r.SettlesAt = now
			}
		}
	}
	r.EndsAt = timing.Latest(r.SettlesAt.Add(d.Settle.Duration), now)
	return r
}
