package explanation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
)

// Moment is an event in the past or future of the node.
type Moment struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
}

// timeline returns the events of the node's record in order. Those after the time of the
// explanation are expected.
func timeline(e *Explanation, policy *v1alpha1.RebootPolicy, n *record.Node, reboot *underway.Reboot) []Moment {
	var moments []Moment
	add := func(t time.Time, format string, args ...any) {
		if !t.IsZero() {
			moments = append(moments, Moment{At: t, What: fmt.Sprintf(format, args...)})
		}
	}
	if n.NeedsReboot() {
		add(n.RequiredSince, "needs a reboot: %s", n.RequiredReason)
	}
	addGrant(add, n, reboot)
	if h := n.Hooks; h != nil {
		add(h.At.Time, "hooks began, %s", map[v1alpha1.HookStage]string{v1alpha1.HooksBefore: "before the drain", v1alpha1.HooksAfter: "after the boot"}[h.Stage])
	}
	if n.Progress != nil {
		addProgress(add, n, reboot != nil)
		addEnd(add, policy, n)
	}
	if e.Reboot != nil {
		add(e.Reboot.DrainUntil, "the drain times out")
	}
	add(e.Until, "%s", comes(e))
	slices.SortStableFunc(moments, func(a, b Moment) int { return cmp.Compare(a.At.Unix(), b.At.Unix()) })
	return moments
}

type addMoment func(t time.Time, format string, args ...any)

func addGrant(add addMoment, n *record.Node, reboot *underway.Reboot) {
	g := n.Grant
	if reboot != nil && (g == nil || g.Seq != reboot.Entry.Seq) {
		add(reboot.Entry.At.Time, "chosen, number %d in the ledger", reboot.Entry.Seq)
	}
	if g == nil {
		return
	}
	switch g.State {
	case protocol.GrantActive:
		add(g.At.Time, "granted by policy %s, number %d", g.Policy, g.Seq)
	case protocol.GrantCancelled:
		add(g.At.Time, "grant %d was cancelled: %s", g.Seq, g.Reason)
	case protocol.GrantFinished:
		add(g.At.Time, "back in service, grant %d of policy %s is over", g.Seq, g.Policy)
	}
}

// addEnd adds the end of the reported reboot if a later grant has replaced its grant.
func addEnd(add addMoment, policy *v1alpha1.RebootPolicy, n *record.Node) {
	if policy == nil || n.Grant == nil || n.Grant.Seq == n.Progress.Seq {
		return
	}
	for _, past := range policy.Status.History {
		if past.Node == n.Name && past.Seq == n.Progress.Seq && past.Result == v1alpha1.RebootSucceeded {
			add(past.EndedAt.Time, "back in service, grant %d of policy %s is over", past.Seq, policy.Name)
		}
	}
}

func addProgress(add addMoment, n *record.Node, granted bool) {
	p := n.Progress
	if p.DrainStartedAt != nil && p.Phase != protocol.PhaseDraining {
		add(p.DrainStartedAt.Time, "drain began")
	}
	switch p.Phase {
	case protocol.PhaseDraining:
		add(p.At.Time, "drain began")
	case protocol.PhaseAborted:
		add(p.At.Time, "attempt aborted: %s, %s (%d in a row)", p.Reason, p.Message, p.Failures)
	case protocol.PhaseRebooting:
		add(p.At.Time, "sent to reboot")
		if granted && p.HasBooted(n.BootID) && !n.Maintenance {
			add(n.MaintenanceSince, "the agent reported after the boot")
		}
		if granted && p.HasBooted(n.BootID) && n.Ready {
			add(n.ReadySince, "Ready")
		}
	}
}

// comes describes what happens at the end of a reason or of a reboot's phase.
func comes(e *Explanation) string {
	switch {
	case e.Reboot == nil:
		return string(e.Reason) + " is over"
	case e.Reboot.Phase == underway.StateSettling:
		return "back in service, if it stays Ready"
	case !e.Reboot.DrainUntil.IsZero():
		return "overdue, unless the agent has reported how the drain ended"
	}
	return "times out"
}
