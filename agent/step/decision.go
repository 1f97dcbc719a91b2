package step

import (
	"github.com/reboot-operator/reboot-operator/api/protocol"
)

// Decision is what the agent does about an Observation.
type Decision struct {
	// Next is the step.
	Next Step
	// Report is what the Node states when the step is done.
	Report NodeStatus
	// Inspect is the manager's question about the pods of the node, while its answer is wanted. Nil: nobody needs to look.
	Inspect *protocol.Preflight
	// KeepsDraining reports whether a drain that runs goes on: while the attempt is neither committed nor aborted.
	KeepsDraining bool
}

// Decide is the agent's decision.
func Decide(o Observation) Decision {
	d := Decision{Next: Next(o), Inspect: wantsLook(o)}
	switch next := d.Next.(type) {
	case CommitReboot:
		o.Record.Progress = &next.Progress
	case RunDrain, Wait:
		d.KeepsDraining = o.InPhase(protocol.PhaseDraining)
	}
	d.Report = NodeStatusOf(o)
	return d
}
