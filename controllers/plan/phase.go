package plan

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Phase is how far a granted reboot is, in one word: the same for people and for metrics.
type Phase string

// The phases, in the order in which a reboot goes through them.
const (
	// PhaseGranted means it is in the ledger, and the agent has not begun.
	PhaseGranted Phase = "Granted"
	// PhaseHooks means that before the drain or after the boot, hooks are waited for.
	PhaseHooks Phase = "Hooks"
	// PhaseDraining means the node is cordoned and its pods are leaving.
	PhaseDraining Phase = "Draining"
	// PhaseRebooting means the agent has passed the point of no return.
	PhaseRebooting Phase = "Rebooting"
	// PhaseBooted means the boot ID is new, and the node is not Ready or its agent has not reported.
	PhaseBooted Phase = "Booted"
	// PhaseSettling means the node is back and must stay so for spec.settle.
	PhaseSettling Phase = "Settling"
	// PhaseAborted means the attempt is over without a reboot; the ledger follows.
	PhaseAborted Phase = "Aborted"
)

// Phase is how far the flight is, and since when. The Node must be there.
func (t Flight) Phase() (Phase, time.Time) {
	n := t.Node
	p := n.Progress
	switch {
	case t.Action == BeginHooks: // what stands on the node is of an earlier phase
		return PhaseHooks, t.Entry.At.Time
	case n.Hooks != nil && n.Hooks.Seq == t.Entry.Seq && hooked(t.Reason):
		return PhaseHooks, n.Hooks.At.Time
	case p == nil || p.Seq != t.Entry.Seq:
		return PhaseGranted, t.Entry.At.Time
	case p.Phase == v1alpha1.PhaseDraining:
		return PhaseDraining, p.At.Time
	case p.Phase == v1alpha1.PhaseAborted:
		return PhaseAborted, p.At.Time
	case n.BootID == "" || n.BootID == p.BootID:
		return PhaseRebooting, p.At.Time
	case !n.Ready || n.Maintenance:
		return PhaseBooted, p.At.Time
	case n.MaintenanceSince.After(n.ReadySince):
		return PhaseSettling, n.MaintenanceSince
	}
	return PhaseSettling, n.ReadySince
}

func hooked(reason v1alpha1.Reason) bool {
	return reason == v1alpha1.ReasonWaitingForHook || reason == v1alpha1.ReasonHookFailed || reason == v1alpha1.ReasonHookTimedOut
}
