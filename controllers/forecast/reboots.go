package forecast

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/queue"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// reboots are the imagined reboots of a fleet: the current ones, and all that have started.
type reboots struct {
	fleet     *fleet
	durations Durations
	// current are the current reboots, by node.
	current map[string]current
	// started are the reboots of the policy, in the order of their start.
	started []Expected
	// ended is the number of ledger entries that the next plan releases.
	ended int
	// most is the largest number of reboots that were current at the same time.
	most int
}

// current is a reboot that ends at its expected time.
type current struct {
	Expected
	// foreign reports whether another policy granted it.
	foreign bool
}

// follow records what the plan reports for an entry of the ledger. It reports whether the manager
// would write something because of it and plan again.
func (r *reboots) follow(t underway.Reboot) (again bool) {
	f, name := r.fleet, t.Entry.Node
	if own, ok := r.current[name]; ok && !own.foreign {
		return false
	}
	switch {
	case t.Action == underway.ReleaseEntry:
		if f.retire(f.shown[name]); f.shown[name] == nil {
			delete(r.current, name) // The policy has taken over a foreign reboot.
		}
		return false
	case t.Action == underway.CancelGrant || givesUp(t):
		f.cancel(t)
		return true
	case stuck(t, f.Now):
		return false
	}
	reboot := r.awaitPeople(r.durations.underWay(f.shown[name], t.Entry.At.Time, f.Now))
	if t.Action == underway.FinishGrant {
		reboot.EndsAt, again = f.Now, true
	}
	r.begin(t.Entry, reboot)
	return again
}

// awaitPeople returns a reboot whose drained node waits for people who are logged in. They are expected
// to stay until the reboot waits no longer: for ten minutes, or until the drain times out.
func (r *reboots) awaitPeople(reboot Expected) Expected {
	n, drain := r.fleet.shown[reboot.Node], r.fleet.Policy.Spec.DrainOrDefault()
	if n.PeopleSince.IsZero() {
		return reboot
	}
	until := timing.Earliest(n.PeopleSince.Add(v1alpha1.SessionsLast), reboot.DrainsAt.Add(drain.LeadTimeOrDefault()+drain.TimeoutOrDefault()))
	if late := until.Sub(reboot.RebootsAt); late > 0 {
		reboot.RebootsAt, reboot.SettlesAt, reboot.EndsAt = reboot.RebootsAt.Add(late), reboot.SettlesAt.Add(late), reboot.EndsAt.Add(late)
	}
	return reboot
}

// stuck reports whether the reboot keeps its slot until a person acts.
func stuck(t underway.Reboot, now time.Time) bool {
	return !t.FailedAt.IsZero() || t.HookUnanswered(now) || t.Action == underway.Wait && t.Reason == v1alpha1.ReasonRecordUnreadable
}

// givesUp reports whether the agent is about to end its drain because its grant was cancelled. An
// unreadable record does not show that.
func givesUp(t underway.Reboot) bool {
	g := t.Node.Grant
	return g != nil && g.Seq == t.Entry.Seq && g.State == protocol.GrantCancelled && !t.Rebooting() && t.Node.ProgressErr == nil
}

// start starts the reboot for a grant of the plan.
func (r *reboots) start(e v1alpha1.LedgerEntry) {
	if w := r.fleet.queues.at[e.Node]; w != nil {
		r.fleet.show(w.node)
	}
	r.begin(e, r.expected(e.Node))
}

// expected returns a reboot that begins now.
func (r *reboots) expected(node string) Expected {
	in, d := r.fleet.Window, r.durations
	reboot := Expected{Node: node, StartsAt: r.fleet.Now, Window: in.Name, ClosesAt: in.ClosesAt}
	reboot.DrainsAt = reboot.StartsAt.Add(d.Before.Duration)
	reboot.RebootsAt = reboot.DrainsAt.Add(d.Drain.Duration)
	reboot.SettlesAt = reboot.RebootsAt.Add(d.Reboot.Duration)
	reboot.EndsAt = reboot.SettlesAt.Add(d.Settle.Duration)
	return reboot
}

// begin starts the reboot of an entry. Until it ends, the planner sees it as current and on time.
// The progress is made up, as in serve: the agent's moves would start from the state of the Node,
// but here only the times of the phases are known.
func (r *reboots) begin(e v1alpha1.LedgerEntry, reboot Expected) {
	r.current[e.Node] = current{Expected: reboot}
	r.started = append(r.started, reboot)
	n, t := r.fleet.shown[e.Node], metav1.NewTime(reboot.EndsAt)
	cordoned := n.Progress != nil && n.Progress.Seq == e.Seq && n.Progress.Cordoned
	n.Progress, n.ProgressErr = &protocol.Progress{Seq: e.Seq, Phase: protocol.PhaseRebooting, BootID: n.BootID, At: t, Cordoned: cordoned}, nil
	grant, _ := protocol.Publish(n.Record, e, r.fleet.Ledger.Policy.Name, reboot.EndsAt)
	n.Grant = &grant
}

// addForeign adds the current reboots that another policy has granted, because they use the same
// limit or the same quorum.
func (r *reboots) addForeign() {
	for name, n := range r.fleet.shown {
		if r.underWay(name) || !n.Outstanding() || r.fleet.holds(name) {
			continue
		}
		granted := r.fleet.Now
		if n.Grant != nil {
			granted = n.Grant.At.Time
		}
		r.current[name] = current{Expected: r.durations.underWay(n, granted, r.fleet.Now), foreign: true}
	}
}

// end ends the reboots whose time has come. The planner then removes them from the ledger.
func (r *reboots) end() {
	f := r.fleet
	for name, t := range r.current {
		if t.EndsAt.After(f.Now) {
			continue
		}
		delete(r.current, name)
		n := f.shown[name]
		f.serve(n, t.Expected)
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

// nextEnd returns the time of the next end, or zero without current reboots.
func (r *reboots) nextEnd() time.Time {
	var next time.Time
	for _, t := range r.current {
		next = timing.Earliest(next, t.EndsAt)
	}
	return next
}

// room returns the largest number of nodes that may be granted at once.
func (r *reboots) room() int {
	grants, own := r.fleet.Ledger.Policy.Status.Grants, 0
	for _, e := range grants {
		if r.fleet.Ledger.Owns(e) {
			own++
		}
	}
	return max(0, min(r.fleet.limit-len(grants), r.fleet.own-own)+r.ended)
}

// domains returns the domains in which nodes are being rebooted.
func (r *reboots) domains() map[string]bool {
	busy, policy := map[string]bool{}, r.fleet.Policy
	for name := range r.current {
		busy[queue.Domain(policy, r.fleet.shown[name])] = true
	}
	for _, e := range r.fleet.Ledger.Policy.Status.Grants {
		if n := r.fleet.shown[e.Node]; n != nil && r.fleet.Ledger.Owns(e) {
			busy[queue.Domain(policy, n)] = true
		}
	}
	return busy
}

// slots returns the times at which the slots that were in use become free, sorted. A free slot has
// the zero time.
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

// forget removes the current reboots, whose ends are known.
func (r *reboots) forget() {
	status := &r.fleet.Ledger.Policy.Status
	status.Grants = slices.DeleteFunc(status.Grants, func(e v1alpha1.LedgerEntry) bool { return r.underWay(e.Node) })
	for name := range r.current {
		delete(r.fleet.shown, name)
	}
	clear(r.current)
}

// underWay reports whether a reboot of the node is current.
func (r *reboots) underWay(node string) bool {
	_, ok := r.current[node]
	return ok
}
