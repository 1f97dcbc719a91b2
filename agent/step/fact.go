package step

import (
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
)

// Fact is something that costs a request or a wait to find out, and is found out only where a decision depends on it.
type Fact string

const (
	// FactNone means everything is known that deciding takes.
	FactNone Fact = ""
	// FactLedger is the entry for the node in the ledger that the grant names, and what the granting policy specifies.
	FactLedger Fact = "Ledger"
	// FactPolicy is what the granting policy specifies.
	FactPolicy Fact = "Policy"
	// FactVolumes is which volumes the pods that stay account for.
	FactVolumes Fact = "Volumes"
	// FactPods is which pods of a node whose drain could begin now are in the way: what was known before may be out of date.
	FactPods Fact = "Pods"
	// FactEngines is whether the engines that ask for a reboot still do.
	FactEngines Fact = "Engines"
	// FactInhibitors is who keeps the host up.
	FactInhibitors Fact = "Inhibitors"
	// FactCoordinators is who else may reboot the host.
	FactCoordinators Fact = "Coordinators"
	// FactShutdown asks whether logind is taking the host down.
	FactShutdown Fact = "Shutdown"
)

// missing is the fact to find out next. A fact decides whether later ones are needed, so they are found out in this order, each once.
func (o Observation) missing() Fact {
	for _, candidate := range []struct {
		fact   Fact
		needed bool
	}{
		{FactLedger, needsLedger(o)},
		{FactPolicy, needsPolicy(o)},
		{FactVolumes, needsVolumes(o)},
		{FactPods, o.mayBegin() && o.startLook().At.IsZero()},
		{FactEngines, o.mayBegin() && !o.blocks(o.startLook())},
		{FactInhibitors, needsHost(o)},
		{FactCoordinators, needsCoordinators(o)},
		{FactShutdown, needsShutdown(o)},
	} {
		if candidate.needed && !slices.Contains(o.Sought, candidate.fact) {
			return candidate.fact
		}
	}
	return FactNone
}

// needsLedger reports whether an attempt may begin, or logind may be called, if the ledger has its grant.
func needsLedger(o Observation) bool {
	if o.InPhase(protocol.PhaseRebooting) {
		return protocol.Committed(o.Record, o.BootID) && !o.Now.Before(callDue(o))
	}
	return mayStart(o) && !o.Paused && !o.UnderWay()
}

// policyLasts is how long what was read for a write holds for what follows it. Longer than that nothing follows at once.
const policyLasts = 5 * time.Second

// needsPolicy reports whether the next step of a drain may depend on the policy as it is now. It may when the drain may begin or
// end. A drain that runs goes by the policy it began with, until its deadline. One that follows a write at once goes by what was
// read for the write.
func needsPolicy(o Observation) bool {
	switch {
	case o.Record.Grant == nil,
		o.Drain.State == DrainRunning && o.Now.Before(o.deadline()),
		o.followsWrite() && o.LastPolicy != nil && o.Now.Before(o.LastPolicyAt.Add(policyLasts)):
		return false
	}
	_, commits := protocol.Commit(o.Record, o.BootID, o.Now)
	return commits
}

// needsVolumes reports whether it matters which volumes stay in use: once the drain is done, and the kubelet uses any.
func needsVolumes(o Observation) bool { return len(waitedFor(o)) > 0 }

// needsHost reports whether it matters now who keeps the host up, and who else reboots it. It does while the node asks for a reboot and
// waits for a grant, and when it is drained.
func needsHost(o Observation) bool {
	switch {
	case o.InPhase(protocol.PhaseRebooting):
		return false
	case o.InPhase(protocol.PhaseDraining):
		return o.Drain.State == DrainDone || !o.Now.Before(o.deadline())
	}
	return o.asks()
}

// needsShutdown reports whether the attempt is to end past the point of no return, unless logind takes the host down.
func needsShutdown(o Observation) bool {
	if !o.InPhase(protocol.PhaseRebooting) {
		return false
	}
	reason, _, _ := deadEnd(o)
	return bootedSince(o) || reason != "" && !o.Now.Before(callDue(o))
}

// needsCoordinators reports whether it matters who else reboots the host. It does at rest, too: another coordinator may reboot
// the host before the node asks for it.
func needsCoordinators(o Observation) bool { return needsHost(o) || o.Engines != nil && !o.UnderWay() }
