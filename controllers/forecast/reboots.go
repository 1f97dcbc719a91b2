package forecast

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// reboots are those of a fleet as they are imagined: in progress at its instant, and all that have started.
type reboots struct {
	fleet     *fleet
	durations Durations
	// current are those in progress, by node.
	current map[string]current
	// started are those of the policy, as they start.
	started []Reboot
	// ended is how many entries of the ledger the next plan releases.
	ended int
	// most is how many were in progress at once.
	most int
}

// current is a reboot that is imagined to end at its time.
type current struct {
	Reboot
	// foreign is one that another policy granted.
	foreign bool
}

// follow records what the plan reports of an entry of the ledger. It reports whether the manager would write something about it,
// and plan again.
func (r *reboots) follow(t plan.Reboot) (again bool) {
	f, name := r.fleet, t.Entry.Node
	if own, ok := r.current[name]; ok && !own.foreign {
		return false
	}
	switch {
	case t.Action == plan.ReleaseEntry:
		if f.retire(f.shown[name]); f.shown[name] == nil {
			delete(r.current, name) // where the policy has taken a foreign one over
		}
		return false
	case t.Action == plan.CancelGrant || givesUp(t):
		f.cancel(t)
		return true
	case stuck(t, f.Now):
		return false
	}
	is := r.durations.underWay(f.shown[name], t.Entry.At.Time, f.Now)
	if t.Action == plan.FinishGrant {
		is.EndsAt, again = f.Now, true
	}
	r.begin(t.Entry, is)
	return again
}

// stuck reports whether the reboot keeps its slot until a person acts.
func stuck(t plan.Reboot, now time.Time) bool {
	return !t.FailedAt.IsZero() || t.HookUnanswered(now) || t.Action == plan.Wait && t.Reason == v1alpha1.ReasonRecordUnreadable
}

// givesUp reports whether the agent is about to end its drain, as the grant was cancelled. Of a record that cannot be read, nothing
// shows that it drains.
func givesUp(t plan.Reboot) bool {
	g := t.Node.Grant
	return g != nil && g.Seq == t.Entry.Seq && g.State == protocol.GrantCancelled && !t.Rebooting() && t.Node.ProgressErr == nil
}

// start imagines a grant that the plan gives now.
func (r *reboots) start(e v1alpha1.LedgerEntry) {
	if w := r.fleet.queues.at[e.Node]; w != nil {
		r.fleet.show(w.node)
	}
	r.begin(e, r.expected(e.Node))
}

// expected is a reboot that begins now.
func (r *reboots) expected(node string) Reboot {
	in, d := r.fleet.Window, r.durations
	is := Reboot{Node: node, StartsAt: r.fleet.Now, Window: in.Name, ClosesAt: in.ClosesAt}
	is.DrainsAt = is.StartsAt.Add(d.Before.Duration)
	is.RebootsAt = is.DrainsAt.Add(d.Drain.Duration)
	is.SettlesAt = is.RebootsAt.Add(d.Reboot.Duration)
	is.EndsAt = is.SettlesAt.Add(d.Settle.Duration)
	return is
}

// begin puts an entry in progress: the planner sees it on its way, in time, until it ends. It makes the progress up, as serve does: the
// agent's moves start from what the Node shows, and here only the times of the phases are known.
func (r *reboots) begin(e v1alpha1.LedgerEntry, is Reboot) {
	r.current[e.Node] = current{Reboot: is}
	r.started = append(r.started, is)
	n, at := r.fleet.shown[e.Node], metav1.NewTime(is.EndsAt)
	cordoned := n.Progress != nil && n.Progress.Seq == e.Seq && n.Progress.Cordoned
	n.Progress, n.ProgressErr = &protocol.Progress{Seq: e.Seq, Phase: protocol.PhaseRebooting, BootID: n.BootID, At: at, Cordoned: cordoned}, nil
	grant, _ := protocol.Publish(n.Record, e, r.fleet.Holder().Name, is.EndsAt)
	n.Grant = &grant
}

// addForeign puts in progress what another policy has granted: it uses what this one has, or is of the same quorum.
func (r *reboots) addForeign() {
	for name, n := range r.fleet.shown {
		if r.underWay(name) || !n.Outstanding() || r.fleet.holds(name) {
			continue
		}
		granted := r.fleet.Now
		if n.Grant != nil {
			granted = n.Grant.At.Time
		}
		r.current[name] = current{Reboot: r.durations.underWay(n, granted, r.fleet.Now), foreign: true}
	}
}

// end ends the reboots whose time has come. The planner then takes them out of the ledger.
func (r *reboots) end() {
	f := r.fleet
	for name, t := range r.current {
		if t.EndsAt.After(f.Now) {
			continue
		}
		delete(r.current, name)
		n := f.shown[name]
		f.serve(n, t.Reboot)
		if t.foreign {
			n.Record = protocol.Record{}
			f.drop(name)
			f.retire(n)
			continue
		}
		f.Policy.Status.LastRebootAt = &n.Grant.At
		r.ended++
	}
}

// nextEnd is when the next one ends. Zero: none is in progress.
func (r *reboots) nextEnd() time.Time {
	var next time.Time
	for _, t := range r.current {
		next = timing.Earliest(next, t.EndsAt)
	}
	return next
}

// room is how many nodes may be granted at once at most.
func (r *reboots) room() int {
	grants, own := r.fleet.Holder().Status.Grants, 0
	for _, e := range grants {
		if r.fleet.Owns(e) {
			own++
		}
	}
	return max(0, min(r.fleet.limit-len(grants), r.fleet.own-own)+r.ended)
}

// domains are those in which nodes are being rebooted.
func (r *reboots) domains() map[string]bool {
	busy, policy := map[string]bool{}, r.fleet.Policy
	for name := range r.current {
		busy[plan.Domain(policy, r.fleet.shown[name])] = true
	}
	for _, e := range r.fleet.Holder().Status.Grants {
		if n := r.fleet.shown[e.Node]; n != nil && r.fleet.Owns(e) {
			busy[plan.Domain(policy, n)] = true
		}
	}
	return busy
}

// slots are when each of the slots that were used at once is free, the first first. Zero: it is.
func (r *reboots) slots() []time.Time {
	slots := make([]time.Time, 0, max(r.most, 1))
	for _, t := range r.current {
		slots = append(slots, t.EndsAt)
	}
	for len(slots) < max(r.most, 1) {
		slots = append(slots, time.Time{})
	}
	slices.SortFunc(slots, time.Time.Compare)
	return slots
}

// forget removes those in progress: how they end is known.
func (r *reboots) forget() {
	status := &r.fleet.Holder().Status
	status.Grants = slices.DeleteFunc(status.Grants, func(e v1alpha1.LedgerEntry) bool { return r.underWay(e.Node) })
	for name := range r.current {
		delete(r.fleet.shown, name)
	}
	clear(r.current)
}

// underWay reports whether a reboot of the node is in progress.
func (r *reboots) underWay(node string) bool {
	_, ok := r.current[node]
	return ok
}
