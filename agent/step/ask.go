package step

import (
	"slices"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
)

// Ask is something that costs a request or a wait to find out, and is found out only where a decision depends on it.
type Ask string

const (
	// AskNothing means everything is known that deciding takes.
	AskNothing Ask = ""
	// AskPolicy reads the granting policy.
	AskPolicy Ask = "Policy"
	// AskVolumes looks up which volumes the pods that stay account for.
	AskVolumes Ask = "Volumes"
	// AskPods looks at the pods of a node whose drain could begin now: what was known before may be out of date.
	AskPods Ask = "Pods"
	// AskEngines makes the engines that ask for a reboot confirm it.
	AskEngines Ask = "Engines"
	// AskInhibitors asks logind who keeps the host up.
	AskInhibitors Ask = "Inhibitors"
	// AskCoordinators looks for others who may reboot the host.
	AskCoordinators Ask = "Coordinators"
)

// NextAsk is what to find out next. Each answer may make further ones necessary or needless, so they come in order, and each
// is asked for once.
func (o Observation) NextAsk() Ask {
	for _, candidate := range []struct {
		ask    Ask
		needed bool
	}{
		{AskPolicy, asksPolicy(o)},
		{AskVolumes, asksVolumes(o)},
		{AskPods, o.mayBegin()},
		{AskEngines, o.mayBegin() && !o.StartLook.Objects(*o.Policy)},
		{AskInhibitors, asksHost(o)},
		{AskCoordinators, asksCoordinators(o)},
	} {
		if candidate.needed && !slices.Contains(o.Answered, candidate.ask) {
			return candidate.ask
		}
	}
	return AskNothing
}

// asksPolicy reports whether the next step may depend on the policy: when a drain may begin or end, and when logind is about to
// be called. A drain that runs goes by the policy it began with, until its deadline.
func asksPolicy(o Observation) bool {
	if o.Record.Grant == nil || o.Record.ProgressErr != nil || o.Drain.State == DrainRunning && o.Now.Before(o.Deadline()) {
		return false
	}
	_, starts := protocol.Start(o.Record, o.BootID, true, o.Now)
	_, commits := protocol.Commit(o.Record, o.BootID, o.Now)
	calls := false
	if o.InPhase(protocol.PhaseRebooting) {
		_, calls = rebooting(o).(CallReboot)
	}
	return starts && !o.Paused || commits || calls
}

// asksVolumes reports whether it matters which volumes stay in use: once the drain is done, and the kubelet uses any.
func asksVolumes(o Observation) bool { return o.Drain.State == DrainDone && len(WaitedFor(o)) > 0 }

// asksHost reports whether it matters now who keeps the host up, and who else reboots it: while the node asks for a reboot and
// waits for a grant, and when it is drained.
func asksHost(o Observation) bool {
	switch {
	case o.InPhase(protocol.PhaseRebooting):
		return false
	case o.InPhase(protocol.PhaseDraining):
		return o.Drain.State == DrainDone || !o.Now.Before(o.Deadline())
	}
	return o.Engine != nil && (o.Engine.State == engine.Needed || o.asked())
}

// asksCoordinators reports whether it matters who else reboots the host. It does at rest, too: another coordinator may reboot
// the host before the node asks for it.
func asksCoordinators(o Observation) bool { return asksHost(o) || o.Engine != nil && !o.UnderWay() }
