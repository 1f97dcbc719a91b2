package main

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/reboot-operator/reboot-operator/agent/engine/rpmostree"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/reboot"
)

// driveRPMOSTree makes rpm-ostree upgrade the host. What it stages is received by the engine, as if anybody had.
func driveRPMOSTree(r *reboot.Reconciler, o options, metrics *reboot.Metrics) manager.RunnableFunc {
	return func(ctx context.Context) error {
		ctx = ctrl.LoggerInto(ctx, ctrl.Log)
		var last rpmostree.Round
		driver := &rpmostree.Driver{
			Connect: host.SystemBus(o.bus), Clock: clock.RealClock{}, HostRoot: o.hostRoot,
			Period: o.drivePeriod, Limit: o.driveTimeout,
			Hold: func() bool { return r.HoldsUpgrades(ctx) },
			Ended: func(round rpmostree.Round) {
				if isNews(round, last) {
					r.LogUpgradesLeft(ctx, round.Policy)
				}
				last = round
			},
			Malformed: metrics.Malformed(rpmostree.Name),
		}
		return driver.Run(ctx)
	}
}

// isNews reports whether a round was left to the host, and the one before was not, or by another policy.
func isNews(round, last rpmostree.Round) bool {
	return round.Outcome == rpmostree.OutcomeLeftToHost && (last.Outcome != round.Outcome || last.Policy != round.Policy)
}
