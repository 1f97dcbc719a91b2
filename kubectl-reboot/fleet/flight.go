package fleet

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// Phase is how far a granted reboot is, in the planner's word.
type Phase = plan.Phase

// The phases, in the order in which a reboot goes through them.
const (
	Granted   = plan.PhaseGranted
	Hooks     = plan.PhaseHooks
	Draining  = plan.PhaseDraining
	Rebooting = plan.PhaseRebooting
	Booted    = plan.PhaseBooted
	Settling  = plan.PhaseSettling
	Aborted   = plan.PhaseAborted
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
	f.Phase, f.Since = t.Phase()
	return f
}
