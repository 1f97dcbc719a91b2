package fleet

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// Phase is how far a granted reboot is, in one word for people.
type Phase string

// The phases, in the order in which a reboot goes through them.
const (
	// Granted: it is in the ledger, and the agent has not begun.
	Granted Phase = "Granted"
	// Hooks: before the drain or after the boot, hooks are waited for.
	Hooks Phase = "Hooks"
	// Draining: the node is cordoned and its pods are leaving.
	Draining Phase = "Draining"
	// Rebooting: the agent has passed the point of no return.
	Rebooting Phase = "Rebooting"
	// Booted: the boot ID is new, and the node is not Ready or its agent has not reported.
	Booted Phase = "Booted"
	// Settling: the node is back and must stay so for spec.settle.
	Settling Phase = "Settling"
	// Aborted: the attempt is over without a reboot; the ledger follows.
	Aborted Phase = "Aborted"
)

// Flight is one granted reboot, for people.
type Flight struct {
	Node string `json:"node"`
	// Number is the grant's.
	Number int64 `json:"number"`
	Phase  Phase `json:"phase"`
	// Since is when the phase began.
	Since time.Time `json:"since"`
	// Reason and Message are the planner's.
	Reason  v1alpha1.Reason `json:"reason,omitempty"`
	Message string          `json:"message,omitempty"`
	// Until is when time alone changes something: a deadline, or the end of settling. Zero: none.
	Until time.Time `json:"until,omitzero"`
	// Overdue tells that a deadline has passed; the slot is kept.
	Overdue bool `json:"overdue,omitempty"`
}

// FlightOf is a flight of a plan, for people. The Node must be there.
func FlightOf(t plan.Flight) Flight {
	f := Flight{
		Node: t.Entry.Node, Number: t.Entry.Seq, Reason: t.Reason, Message: t.Message, Until: t.Until, Overdue: !t.FailedAt.IsZero(),
	}
	f.Phase, f.Since = phase(t)
	return f
}

func phase(t plan.Flight) (Phase, time.Time) {
	n := t.Node
	p := n.Progress
	switch {
	case t.Action == plan.BeginHooks: // what stands on the node is of an earlier phase
		return Hooks, t.Entry.At.Time
	case n.Hooks != nil && n.Hooks.Seq == t.Entry.Seq && hooked(t.Reason):
		return Hooks, n.Hooks.At.Time
	case p == nil || p.Seq != t.Entry.Seq:
		return Granted, t.Entry.At.Time
	case p.Phase == v1alpha1.PhaseDraining:
		return Draining, p.At.Time
	case p.Phase == v1alpha1.PhaseAborted:
		return Aborted, p.At.Time
	case n.BootID == "" || n.BootID == p.BootID:
		return Rebooting, p.At.Time
	case !n.Ready || n.Maintenance:
		return Booted, p.At.Time
	case n.MaintenanceSince.After(n.ReadySince):
		return Settling, n.MaintenanceSince
	}
	return Settling, n.ReadySince
}

func hooked(reason v1alpha1.Reason) bool {
	return reason == v1alpha1.ReasonWaitingForHook || reason == v1alpha1.ReasonHookFailed || reason == v1alpha1.ReasonHookTimedOut
}
