package main

import (
	"context"
	"slices"
	"strings"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/bootc"
	"github.com/reboot-operator/reboot-operator/agent/engine/cosupdateengine"
	"github.com/reboot-operator/reboot-operator/agent/engine/kernel"
	"github.com/reboot-operator/reboot-operator/agent/engine/rpmostree"
	"github.com/reboot-operator/reboot-operator/agent/engine/sentinel"
	"github.com/reboot-operator/reboot-operator/agent/engine/service"
	"github.com/reboot-operator/reboot-operator/agent/engine/source"
	"github.com/reboot-operator/reboot-operator/agent/engine/updateengine"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/reboot"
)

// enginesAuto stands for each engine of engineNames that is found on the host, except kernel, which
// compares only names and not the order of the boot loader.
const enginesAuto = "auto"

// engineNames are the engines that --engines accepts, in the order in which they are reported.
var engineNames = []string{updateengine.Name, cosupdateengine.Name, rpmostree.Name, bootc.Name, sentinel.Name, kernel.Name}

// kernelRelease has the release of the running kernel, and kernelCmdline its command line. A
// container sees those of the host.
const kernelRelease, kernelCmdline = "/proc/sys/kernel/osrelease", "/proc/cmdline"

// engineList returns the engines to run: those that --engines names, and with auto those that may
// be found.
func (o *options) engineList() []string {
	return slices.DeleteFunc(slices.Clone(engineNames), func(name string) bool {
		return !o.isNamed(name) && (name == kernel.Name || !o.isNamed(enginesAuto))
	})
}

// isNamed reports whether --engines names an engine, or auto.
func (o *options) isNamed(name string) bool {
	return slices.Contains(strings.Split(o.engines, ","), name)
}

// mayBeAbsent reports whether an engine need not be on the host: --engines does not name it, and
// --sentinel-file is not set for engine sentinel.
func (o *options) mayBeAbsent(name string) bool {
	return !o.isNamed(name) && (name != sentinel.Name || len(o.sentinelFiles) == 0)
}

// newEngine returns the engine of that name, one of engineNames. before is its last report if the
// agent restarted within the same boot.
func newEngine(name string, o options, metrics *reboot.Metrics, before engine.Report, reports *reboot.Reports) source.Engine {
	common := source.Options{
		Clock: clock.RealClock{}, Optional: o.mayBeAbsent(name), Before: before, Again: reports.Again(name), Reachable: metrics.EngineUp(name),
	}
	bus := service.Bus{Options: common, Connect: host.SystemBus(o.bus), Malformed: metrics.Malformed(name)}
	switch name {
	case cosupdateengine.Name:
		return &cosupdateengine.Engine{Bus: bus}
	case rpmostree.Name:
		coordinators := host.Coordinators{Connect: host.SystemBus(o.bus), HostRoot: o.hostRoot}
		return &rpmostree.Engine{Bus: bus, HostRoot: o.hostRoot, Client: coordinators.FleetLockClient}
	case bootc.Name:
		return &bootc.Engine{Options: common, HostRoot: o.hostRoot, Cmdline: kernelCmdline}
	case sentinel.Name:
		return &sentinel.Engine{Options: common, HostRoot: o.hostRoot, Files: o.sentinelFiles}
	case kernel.Name:
		return &kernel.Engine{Options: common, HostRoot: o.hostRoot, ReleaseFile: kernelRelease}
	}
	return &updateengine.Engine{Bus: bus, RequireEngineSender: o.requireEngineSender}
}

// runEngine runs an engine after the Node has been read, which shows its report before a restart.
func runEngine(name string, r *reboot.Reconciler, o options, metrics *reboot.Metrics) manager.RunnableFunc {
	return func(ctx context.Context) error {
		before, err := r.Before(ctx, name)
		if err != nil {
			return err
		}
		newEngine(name, o, metrics, before, r.Reports).Run(engineLog(ctx, name), r.Reports.Put)
		return nil
	}
}

// engineLog returns a context whose logger names an engine.
func engineLog(ctx context.Context, name string) context.Context {
	return ctrl.LoggerInto(ctx, ctrl.Log.WithValues("engine", name))
}

// driveRPMOSTree runs the Driver of rpm-ostree. The engine reports what it stages.
func driveRPMOSTree(r *reboot.Reconciler, o options, metrics *reboot.Metrics) manager.RunnableFunc {
	return func(ctx context.Context) error {
		ctx = engineLog(ctx, rpmostree.Name)
		driver := &rpmostree.Driver{
			Connect: host.SystemBus(o.bus), Clock: clock.RealClock{}, HostRoot: o.hostRoot,
			Period: o.drivePeriod, Limit: o.driveTimeout,
			Hold: func() bool { return r.HoldsUpgrades(ctx) || zincatiDrives(ctx, o) },
			Ended: func(round, last rpmostree.Round) {
				if isNews(round, last) {
					r.AnnounceUpgradesLeft(ctx, round.Policy)
				}
			},
			Malformed: metrics.Malformed(rpmostree.Name),
		}
		driver.Run(ctx)
		return nil
	}
}

// zincatiDrives reports whether Zincati stages the host's updates and asks the operator before it
// reboots. It returns true if that is unknown.
func zincatiDrives(ctx context.Context, o options) bool {
	client, err := host.Coordinators{Connect: host.SystemBus(o.bus), HostRoot: o.hostRoot}.FleetLockClient(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("Holding upgrades of the host, because it is unknown whether Zincati stages them", "reason", err.Error())
	}
	return err != nil || client != ""
}

// isNews reports whether a round was left to the host although the one before was not, or because
// of another policy.
func isNews(round, last rpmostree.Round) bool {
	return round.Outcome == rpmostree.OutcomeLeftToHost && (last.Outcome != round.Outcome || last.Policy != round.Policy)
}
