package forecast

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// flight is a reboot that is imagined to end at its time.
type flight struct {
	Reboot
	// foreign is one that another policy sees to.
	foreign bool
}

// see takes in what the plan says of an entry of the ledger. It tells whether the manager would write something about it, and
// plan again.
func (u *future) see(t plan.Flight) (again bool) {
	name := t.Entry.Node
	if own := u.flights[name]; own != nil && !own.foreign {
		return false
	}
	switch {
	case t.Action == plan.ReleaseEntry:
		u.retire(u.shown[name])
		return false
	case t.Action == plan.CancelGrant || givesUp(t):
		u.cancel(t)
		return true
	case stuck(t):
		return false
	}
	r := u.underWay(u.shown[name], t.Entry.At.Time)
	if t.Action == plan.FinishGrant {
		r.EndsAt, again = u.Now, true
	}
	u.take(t.Entry, r)
	return again
}

// stuck tells whether the flight keeps its slot until somebody does something.
func stuck(t plan.Flight) bool {
	return !t.FailedAt.IsZero() || t.Action == plan.Wait && t.Reason == v1alpha1.ReasonRecordUnreadable
}

// givesUp tells whether the agent is about to end its drain, as the grant was taken back.
func givesUp(t plan.Flight) bool {
	g := t.Node.Grant
	return g != nil && g.Seq == t.Entry.Seq && g.State == v1alpha1.GrantCancelled && !t.Rebooting()
}

// start imagines a grant that the plan gives now.
func (u *future) start(e v1alpha1.LedgerEntry) {
	if n := u.line.at[e.Node]; n != nil {
		u.show(n.node)
	}
	u.take(e, u.expected(e.Node))
}

// expected is a reboot that begins now.
func (u *future) expected(node string) Reboot {
	d, r := u.durations, Reboot{Node: node, StartsAt: u.Now, Window: u.Window.Name, ClosesAt: u.Window.ClosesAt}
	r.DrainsAt = r.StartsAt.Add(d.Before.Duration)
	r.RebootsAt = r.DrainsAt.Add(d.Drain.Duration)
	r.SettlesAt = r.RebootsAt.Add(d.Reboot.Duration)
	r.EndsAt = r.SettlesAt.Add(d.Settle.Duration)
	return r
}

// take puts an entry in flight: the planner sees it on its way, in time, until it ends.
func (u *future) take(e v1alpha1.LedgerEntry, r Reboot) {
	u.flights[e.Node] = &flight{Reboot: r}
	u.reboots = append(u.reboots, r)
	n, at := u.shown[e.Node], metav1.NewTime(r.EndsAt)
	cordoned := n.Progress != nil && n.Progress.Seq == e.Seq && n.Progress.Cordoned
	n.Progress = &v1alpha1.Progress{Seq: e.Seq, Phase: v1alpha1.PhaseRebooting, BootID: n.BootID, At: at, Cordoned: cordoned}
	n.Grant = &v1alpha1.Grant{Policy: u.Policy.Name, Seq: e.Seq, BootID: n.BootID, State: v1alpha1.GrantActive, At: at}
}

// underWay is the reboot on a node that was granted earlier: as far as it is, and as it is expected to go on from now.
func (u *future) underWay(n *plan.Node, granted time.Time) Reboot {
	d, p := u.durations, n.Progress
	granted = timing.Earliest(granted, u.Now) // what has been has been by now, whatever a node's clock says
	r := Reboot{Node: n.Name, InFlight: true, StartsAt: granted, DrainsAt: later(granted.Add(d.Before.Duration), u.Now)}
	r.RebootsAt = later(r.DrainsAt.Add(d.Drain.Duration), u.Now)
	r.SettlesAt = later(r.RebootsAt.Add(d.Reboot.Duration), u.Now)
	switch {
	case p == nil || p.Phase == v1alpha1.PhaseAborted:
	case p.Phase == v1alpha1.PhaseDraining:
		r.DrainsAt = timing.Earliest(p.At.Time, u.Now)
		r.RebootsAt = later(r.DrainsAt.Add(d.Drain.Duration), u.Now)
		r.SettlesAt = r.RebootsAt.Add(d.Reboot.Duration)
	default:
		r.RebootsAt = timing.Earliest(p.At.Time, u.Now)
		r.DrainsAt, r.SettlesAt = r.RebootsAt, later(r.RebootsAt.Add(d.Reboot.Duration), u.Now)
		if p.DrainStartedAt != nil {
			r.DrainsAt = timing.Earliest(p.DrainStartedAt.Time, r.RebootsAt)
		}
		if n.BootID != "" && n.BootID != p.BootID && n.Ready && !n.Maintenance {
			r.SettlesAt = timing.Earliest(later(n.ReadySince, n.MaintenanceSince), u.Now)
		}
	}
	r.EndsAt = later(r.SettlesAt.Add(d.Settle.Duration), u.Now)
	return r
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// cancel takes a grant back, which the manager would do now; the agent is imagined to have heard.
func (u *future) cancel(t plan.Flight) {
	n := u.shown[t.Entry.Node]
	n.Cordoned = n.Cordoned && (n.Progress == nil || !n.Progress.Cordoned)
	n.Grant = &v1alpha1.Grant{
		Policy: u.Policy.Name, Seq: t.Entry.Seq, BootID: n.BootID, State: v1alpha1.GrantCancelled, Reason: t.Reason, At: metav1.NewTime(u.Now),
	}
	n.Progress = nil
}

// foreign puts those in flight that another policy has granted: they use what this one has, or are of the same quorum.
func (u *future) foreign() {
	for name, n := range u.shown {
		if u.flights[name] != nil || !n.Outstanding() || holds(u.Policy, name) {
			continue
		}
		granted := u.Now
		if n.Grant != nil {
			granted = n.Grant.At.Time
		}
		u.flights[name] = &flight{Reboot: u.underWay(n, granted), foreign: true}
	}
}

func holds(policy *v1alpha1.RebootPolicy, node string) bool {
	return slices.ContainsFunc(policy.Status.Grants, func(e v1alpha1.LedgerEntry) bool { return e.Node == node })
}

// land ends the flights whose time has come. The planner then takes them out of the ledger.
func (u *future) land() {
	for name, t := range u.flights {
		if t.EndsAt.After(u.Now) {
			continue
		}
		delete(u.flights, name)
		n := u.shown[name]
		u.serve(n, t.Reboot)
		if t.foreign {
			n.Record = protocol.Record{}
			u.retire(n)
			continue
		}
		u.Policy.Status.LastRebootAt = &n.Grant.At
		u.landed++
	}
}

// serve puts a node back in service: it is up on a new boot, and its record tells how long that took.
func (u *future) serve(n *plan.Node, r Reboot) {
	n.Cordoned = n.Cordoned && (n.Progress == nil || !n.Progress.Cordoned)
	if n.Grant != nil && n.Progress != nil {
		drains := metav1.NewTime(r.DrainsAt)
		n.Progress = &v1alpha1.Progress{
			Seq: n.Grant.Seq, Phase: v1alpha1.PhaseRebooting, BootID: n.BootID, At: metav1.NewTime(r.RebootsAt), DrainStartedAt: &drains,
		}
		n.Grant = &v1alpha1.Grant{Policy: n.Grant.Policy, Seq: n.Grant.Seq, BootID: n.BootID, State: v1alpha1.GrantFinished, At: metav1.NewTime(u.Now)}
	}
	n.Required, n.BootID, n.Hooks = corev1.ConditionFalse, n.BootID+"+", nil
	n.Ready, n.Maintenance, n.ReadySince, n.MaintenanceSince = true, false, r.SettlesAt, r.SettlesAt
}

// retire lets the planner look away from a node that is back in service, unless it is of the control plane or somebody else
// keeps it cordoned.
func (u *future) retire(n *plan.Node) {
	if n != nil && !n.NeedsReboot() && !n.ControlPlane && !n.Unavailable() {
		delete(u.shown, n.Name)
	}
}
