package plan

import (
	"maps"
	"slices"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/run"
)

// runHookWaits makes the first nodes of a run wait for hooks.runBefore, and those of the next run
// for hooks.runAfter.
func runHookWaits(c *choice, _ *record.Node) *block.Block { return c.run.Waits }

// nextRun sets the stage of the run after the plan, once nodes are chosen.
func nextRun(c *choice) {
	p := &c.plan
	p.RunHooks, p.Ledger.Seq = c.run.Next(run.Turn{Seq: p.Ledger.Seq, Holds: len(p.Ledger.Own()) > 0, Waits: waitsForRun(c), Stage: func() v1alpha1.RunStage { return runStage(c) }})
	p.RunMoves = !run.Same(c.Policy.Status.Run, p.RunHooks)
}

// waitsForRun reports whether only the hooks before the run keep a node from its grant.
func waitsForRun(c *choice) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(c.waiting)), func(o *Blocked) bool { return o.check == v1alpha1.ReasonRunHookWaits })
}

// runStage returns the stage of a run that has begun, from the state of the nodes. Granted reboots,
// soaks and spacing belong to the run. Other blocks that end by themselves, such as gates, keep it
// idle for at most the hooks' timeout.
func runStage(c *choice) v1alpha1.RunStage {
	if len(c.plan.Ledger.Own())+len(c.Orphans)+len(c.plan.Unlisted) > 0 {
		return v1alpha1.RunRunning
	}
	stage := v1alpha1.RunAfter
	if c.dryRun() {
		return stage
	}
	for _, n := range c.active {
		switch o := c.waiting[n.Name]; {
		case o == nil:
		case o.check == v1alpha1.ReasonSpacing, o.check == v1alpha1.ReasonRingWaits && !o.Until.IsZero(), o.ShortLived:
			return v1alpha1.RunRunning
		case o.mayPass() && !c.slots.Never(n) && c.run.MayIdle():
			stage = v1alpha1.RunIdle
		}
	}
	return stage
}

// mayPass reports whether the block ends by itself at a time that the manager does not know.
func (o *Blocked) mayPass() bool {
	switch o.check {
	case v1alpha1.ReasonJustBooted, v1alpha1.ReasonBackingOff, v1alpha1.ReasonBlockingPod:
		return true
	}
	return o.reaches(gateChecks)
}
