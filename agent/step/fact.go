package step

import (
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
)

// Fact is a piece of information that costs a request or a wait. It is looked up only if a decision
// depends on it.
type Fact string

const (
	// FactNone means that nothing is missing for the decision.
	FactNone Fact = ""
	// FactLedger is the node's entry in the ledger that the grant names, together with the spec of
	// the granting policy.
	FactLedger Fact = "Ledger"
	// FactPolicy is the spec of the granting policy.
	FactPolicy Fact = "Policy"
	// FactVolumes are the volumes that belong to pods that stay on the node.
	FactVolumes Fact = "Volumes"
	// FactPods are the pods that prevent a drain which could begin now. An earlier result may be
	// outdated.
	FactPods Fact = "Pods"
	// FactEngines tells whether the engines that require a reboot still do.
	FactEngines Fact = "Engines"
	// FactInhibitors are the programs that keep the host from shutting down.
	FactInhibitors Fact = "Inhibitors"
	// FactCoordinators are the other programs that may reboot the host.
	FactCoordinators Fact = "Coordinators"
	// FactShutdown tells whether logind is taking the host down.
	FactShutdown Fact = "Shutdown"
)

// missing returns the next fact to look up. The order matters, because a fact decides whether later
// ones are needed. Each is looked up once.
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

// needsLedger reports whether an attempt may begin, or logind may be called, provided that the
// ledger holds the grant.
func needsLedger(o Observation) bool {
	if o.InPhase(protocol.PhaseRebooting) {
		return protocol.Committed(o.Record, o.BootID) && !o.Now.Before(callDue(o))
	}
	return mayStart(o) && !o.Paused && !o.UnderWay()
}

// policyLasts is the time for which the policy that was read for a write is still used for the step
// after that write.
const policyLasts = 5 * time.Second

// needsPolicy reports whether the next step of a drain may depend on the current policy, which it
// does when the drain may begin or end. A running drain uses the policy that it began with until
// its deadline. A drain right after a write uses the policy that was read for the write.
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

// needsVolumes reports whether the agent must know to which pods the volumes in use belong: the
// drain is done, and the kubelet still uses some.
func needsVolumes(o Observation) bool { return len(waitedFor(o)) > 0 }

// needsHost reports whether inhibitors and coordinators matter now. They do while the node requires
// a reboot and waits for a grant, and once it is drained.
func needsHost(o Observation) bool {
	switch {
	case o.InPhase(protocol.PhaseRebooting):
		return false
	case o.InPhase(protocol.PhaseDraining):
		return o.Drain.State == DrainDone || !o.Now.Before(o.deadline())
	}
	return o.asks()
}

// needsShutdown reports whether the attempt should end past the point of no return, unless logind
// is taking the host down.
func needsShutdown(o Observation) bool {
	if !o.InPhase(protocol.PhaseRebooting) {
		return false
	}
	reason, _, _ := deadEnd(o)
	return bootedSince(o) || reason != "" && !o.Now.Before(callDue(o))
}

// needsCoordinators reports whether coordinators matter now. They also do at rest, because another
// coordinator may reboot the host before the node requires a reboot.
func needsCoordinators(o Observation) bool { return needsHost(o) || o.Engines != nil && !o.UnderWay() }
