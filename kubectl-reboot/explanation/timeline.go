package explanation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
)

// Moment is something that happened to the node, or will.
type Moment struct {
	At   time.Time `json:"at"`
	What string    `json:"what"`
}

// timeline is what the node's record tells, first things first. What lies after the explanation's instant is to come.
func timeline(e *Explanation, n *plan.Node, reboot *plan.Reboot) []Moment {
	var moments []Moment
	tell := func(at time.Time, format string, args ...any) {
		if !at.IsZero() {
			moments = append(moments, Moment{At: at, What: fmt.Sprintf(format, args...)})
		}
	}
	if n.NeedsReboot() {
		tell(n.RequiredSince, "needs a reboot: %s", n.RequiredReason)
	}
	tellGrant(tell, n, reboot)
	if h := n.Hooks; h != nil {
		tell(h.At.Time, "hooks began, %s", map[v1alpha1.HookStage]string{v1alpha1.HooksBefore: "before the drain", v1alpha1.HooksAfter: "after the boot"}[h.Stage])
	}
	if n.Progress != nil {
		tellProgress(tell, n, reboot != nil)
	}
	if e.Reboot != nil {
		tell(e.Reboot.DrainUntil, "the drain times out")
	}
	tell(e.Until, "%s", comes(e))
	slices.SortStableFunc(moments, func(a, b Moment) int { return cmp.Compare(a.At.Unix(), b.At.Unix()) })
	return moments
}

type teller func(at time.Time, format string, args ...any)

func tellGrant(tell teller, n *plan.Node, reboot *plan.Reboot) {
	g := n.Grant
	if reboot != nil && (g == nil || g.Seq != reboot.Entry.Seq) {
		tell(reboot.Entry.At.Time, "chosen, number %d in the ledger", reboot.Entry.Seq)
	}
	if g == nil {
		return
	}
	switch g.State {
	case v1alpha1.GrantActive:
		tell(g.At.Time, "granted by policy %s, number %d", g.Policy, g.Seq)
	case v1alpha1.GrantCancelled:
		tell(g.At.Time, "grant %d was taken back: %s", g.Seq, g.Reason)
	case v1alpha1.GrantFinished:
		tell(g.At.Time, "back in service, grant %d of policy %s is over", g.Seq, g.Policy)
	}
}

func tellProgress(tell teller, n *plan.Node, flying bool) {
	p := n.Progress
	if p.DrainStartedAt != nil && p.Phase != v1alpha1.PhaseDraining {
		tell(p.DrainStartedAt.Time, "drain began")
	}
	switch p.Phase {
	case v1alpha1.PhaseDraining:
		tell(p.At.Time, "drain began")
	case v1alpha1.PhaseAborted:
		tell(p.At.Time, "gave up: %s, %s (%d in a row)", p.Reason, p.Message, p.Failures)
	case v1alpha1.PhaseRebooting:
		tell(p.At.Time, "sent to reboot")
		if flying && n.BootID != p.BootID && !n.Maintenance {
			tell(n.MaintenanceSince, "the agent reported after the boot")
		}
		if flying && n.BootID != p.BootID && n.Ready {
			tell(n.ReadySince, "Ready")
		}
	}
}

// comes is what happens at the end of a reboot's or a reason's time.
func comes(e *Explanation) string {
	switch {
	case e.Reboot == nil:
		return string(e.Reason) + " is over"
	case e.Reboot.Phase == fleet.Settling:
		return "back in service, if it stays Ready"
	case !e.Reboot.DrainUntil.IsZero():
		return "overdue, unless the agent has reported how the drain ended"
	}
	return "times out"
}
