// Package forecast states when each node will be rebooted, and when all are done. It runs the planner of controllers/plan forward. A
// reboot that a plan grants takes as long as reboots of the policy have taken so far. The planner is asked again at the next instant at
// which anything changes.
//
// It is an expectation, not a promise. It cannot know what will need a reboot tomorrow, which drain will hang, or when a person ends a
// pause. What waits for a person or for another system stays where it is in the forecast, and is listed apart.
//
// The planner sees the smallest fleet that gives the same answer: no nodes that are done, and of each queue only the first. So a
// fleet of thousands costs about as many short plans as there are reboots one after the other. Where even that is more than the
// caller has left, the rest of the queues is extrapolated.
package forecast

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Forecast is what one policy will do, from one instant on, as far as that is known.
type Forecast struct {
	Policy string `json:"policy"`
	// At is the instant from which it looks ahead.
	At time.Time `json:"at"`
	// DryRun reports that the policy only reports: it is what it would do.
	DryRun    bool      `json:"dryRun,omitempty"`
	Durations Durations `json:"durations"`
	// Reboots are those in progress and those to come, in the order in which they start.
	Reboots []Reboot `json:"reboots"`
	// Stays are the nodes that need a reboot and will have none without an action, by name.
	Stays []Stay `json:"stays,omitempty"`
	// Due are the nodes that need no reboot yet and will within a year, because of their uptime. The first to become due is first.
	Due []Due `json:"due,omitempty"`
	// CompletionAt is when the last of Reboots is back in service. Zero: there is none, or Unknown gives the reason.
	CompletionAt time.Time `json:"completionAt,omitzero"`
	// Unknown states why it is unknown when all is done. Empty: it is known, or nothing is to be done.
	Unknown string `json:"unknown,omitempty"`
	// Window is the one that is open, or opens next. Nil: the policy is always open, or never.
	Window *Window `json:"window,omitempty"`
	// FinishesInWindow reports that all Reboots end before that window closes.
	FinishesInWindow bool `json:"finishesInWindow"`
	// MissesDeadline are the nodes, by name, that will not be back in service before spec.deadline ends for them, or have missed it.
	MissesDeadline []string `json:"missesDeadline,omitempty"`
	// Extrapolated is how many of the last Reboots go by the pace of those before them. 0: each comes from a plan.
	Extrapolated int `json:"extrapolated,omitempty"`
}

// Reboot is one reboot that is in progress or to come. What is past is as it was, what is ahead as it is expected.
type Reboot struct {
	Node string `json:"node"`
	// StartsAt is when it is granted, DrainsAt when the drain begins, and RebootsAt when the host goes down. SettlesAt is when it is
	// up and its agent has reported, and EndsAt when the node is back in service.
	StartsAt  time.Time `json:"startsAt"`
	DrainsAt  time.Time `json:"drainsAt"`
	RebootsAt time.Time `json:"rebootsAt"`
	SettlesAt time.Time `json:"settlesAt"`
	EndsAt    time.Time `json:"endsAt"`
	// Window is the window in which it starts, and ClosesAt when that closes. Empty and zero: in progress, or there are no windows.
	Window   string    `json:"window,omitempty"`
	ClosesAt time.Time `json:"closesAt,omitzero"`
	// InProgress reports that it has been granted.
	InProgress bool `json:"inProgress,omitempty"`
}

// Overruns reports whether the node is back in service only after the window in which its reboot starts.
func (r Reboot) Overruns() bool { return !r.ClosesAt.IsZero() && r.EndsAt.After(r.ClosesAt) }

// Stay is a node that needs a reboot and that the forecast leaves where it is.
type Stay struct {
	Node string `json:"node"`
	// Reason and Message are why, as the planner specifies it once nothing else is left to wait for.
	Reason  v1alpha1.Reason `json:"reason"`
	Message string          `json:"message"`
}

// Due is a node that needs no reboot yet, and will because of its uptime.
type Due struct {
	Node string `json:"node"`
	// At is when it has been up for as long as it may be. From then on it waits for its turn like any other.
	At time.Time `json:"at"`
}

// Window is a window by its limits.
type Window struct {
	// Name is that of the first window that is open. Empty: the policy has blackouts only.
	Name string `json:"name,omitempty"`
	// OpensAt is when it opens. Zero: it is open.
	OpensAt time.Time `json:"opensAt,omitzero"`
	// ClosesAt is when it closes. Zero: not within 400 days.
	ClosesAt time.Time `json:"closesAt,omitzero"`
}

// Durations is how long each phase of a reboot is expected to last.
type Durations struct {
	// Before is from the grant to the drain, which is the hooks before the reboot. What no reboot has shown is taken for none.
	Before metav1.Duration `json:"before"`
	// Drain is from the cordon to the point of no return. At least drain.leadTime.
	Drain  metav1.Duration `json:"drain"`
	Reboot metav1.Duration `json:"reboot"`
	// Settle is from the agent's first report to back in service, the hooks after the boot included. At least reboot.settle.
	Settle metav1.Duration `json:"settle"`
	// Measured is how many reboots of status.history they are the median of. 0: they are assumed.
	Measured int `json:"measured"`
}

// Effort bounds the work of one forecast: how many nodes the planner looks at, all its rounds together. What is left then is
// extrapolated.
type Effort int

const (
	// Quick is for callers for which others wait: some 30 ms, and with 15,000 nodes 50.
	Quick Effort = 8_000
	// Thorough is for people who wait for the answer: at most a few seconds, and much less for most fleets.
	Thorough Effort = 1_000_000
)

// horizon is how far the forecast looks ahead.
const horizon = 365 * 24 * time.Hour

// Of is the forecast from a snapshot on.
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

// missing are the nodes of the policy that need a reboot and have none that ends before their deadline.
func missing(s plan.Snapshot, reboots []Reboot) []string {
	if s.Policy.Spec.Deadline == nil {
		return nil
	}
	back := make(map[string]time.Time, len(reboots))
	for _, r := range reboots {
		back[r.Node] = r.EndsAt
	}
	var names []string
	for _, n := range s.Nodes {
		due := plan.DueAt(s.Policy, n)
		if due.IsZero() || s.Governor.Govern(n).Policy != s.Policy.Name {
			continue
		}
		if at, ok := back[n.Name]; !ok || at.After(due) {
			names = append(names, n.Name)
		}
	}
	slices.Sort(names)
	return names
}

// upcoming is the window that is open, or opens next.
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

// foremost is the reason of most of those that stay, with the message of the first of them. Those that wait for their turn wait for others.
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

// due are the nodes of the policy that become due by their uptime before an instant. One whose uptime is over, although its agent
// has not reported it yet, is due now.
func due(s plan.Snapshot, end time.Time) []Due {
	var all []Due
	for _, n := range s.Nodes {
		most, booted := protocol.ParseMaxUptime(n.Annotations), v1alpha1.BootedAt(n.Annotations)
		at := timing.Latest(booted.Add(most), s.Now)
		if most == 0 || booted.IsZero() || at.After(end) || n.NeedsReboot() || n.Outstanding() {
			continue
		}
		if s.Governor.Govern(n).Policy == s.Policy.Name {
			all = append(all, Due{Node: n.Name, At: at})
		}
	}
	slices.SortFunc(all, func(a, b Due) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Node, b.Node)) })
	return all
}

// What drain and reboot are taken to last before the policy has seen one.
const (
	assumedDrain  = 2 * time.Minute
	assumedReboot = plan.AssumedReboot - assumedDrain
)

// Expect is the median of what the policy's reboots took, each phase by itself. Until one has succeeded it is what plan
// assumes, drain.leadTime and two minutes of drain and three of reboot, and reboot.settle.
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

// median is the lower one of an even number.
func median(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[(len(took)-1)/2]
}

// underWay is a reboot that was granted earlier: what is past as it was, and the rest as expected from now on.
func (d Durations) underWay(n *plan.Node, granted, now time.Time) Reboot {
	p := n.Progress
	granted = timing.Earliest(granted, now) // the past ends now, whatever a node's clock reports
	r := Reboot{Node: n.Name, InProgress: true, StartsAt: granted, DrainsAt: timing.Latest(granted.Add(d.Before.Duration), now)}
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
			if plan.StartupTaint(n) != "" {
				r.SettlesAt = now
			}
		}
	}
	r.EndsAt = timing.Latest(r.SettlesAt.Add(d.Settle.Duration), now)
	return r
}
