package main

import (
	"context"
	"strings"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/cosupdateengine"
	"github.com/reboot-operator/reboot-operator/agent/engine/kernel"
	"github.com/reboot-operator/reboot-operator/agent/engine/rpmostree"
	"github.com/reboot-operator/reboot-operator/agent/engine/sentinel"
	"github.com/reboot-operator/reboot-operator/agent/engine/updateengine"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/reboot"
)

// enginesAuto stands for the engine of this release that is heard unless another is named.
const enginesAuto = "auto"

// engineNames are the engines that --engines knows.
var engineNames = []string{updateengine.Name, cosupdateengine.Name, rpmostree.Name, sentinel.Name, kernel.Name}

// kernelRelease is the running kernel's; a container sees the host's.
const kernelRelease = "/proc/sys/kernel/osrelease"

// engineList is --engines with auto resolved.
func (o *options) engineList() []string {
	if o.engines == enginesAuto {
		return []string{updateengine.Name}
	}
	return strings.Split(o.engines, ",")
}

// newEngine makes an engine of engineNames. before is what it had reported when the agent was restarted within a boot.
func newEngine(name string, o options, metrics *reboot.Metrics, before engine.Report) engine.Engine {
	bus, wall := host.SystemBus(o.bus), clock.RealClock{}
	malformed, reachable := metrics.Malformed(name), metrics.EngineUp(name)
	switch name {
	case cosupdateengine.Name:
		return &cosupdateengine.Engine{Connect: bus, Clock: wall, Before: before, Malformed: malformed, Reachable: reachable}
	case rpmostree.Name:
		return &rpmostree.Engine{Connect: bus, Clock: wall, Before: before, Malformed: malformed, Reachable: reachable}
	case sentinel.Name:
		return &sentinel.Engine{HostRoot: o.hostRoot, Clock: wall, Reachable: reachable}
	case kernel.Name:
		return &kernel.Engine{HostRoot: o.hostRoot, ReleaseFile: kernelRelease, Clock: wall, Reachable: reachable}
	}
	return &updateengine.Engine{
		Connect: bus, Clock: wall, RequireEngineSender: o.requireEngineSender,
		Before: before, Malformed: malformed, Reachable: reachable,
	}
}

// runEngine runs an engine once the Node is known, which tells what was reported before a restart.
func runEngine(name string, r *reboot.Reconciler, o options, metrics *reboot.Metrics) manager.RunnableFunc {
	return func(ctx context.Context) error {
		before, err := r.Before(ctx, name)
		if err != nil {
			return err
		}
		return newEngine(name, o, metrics, before).Run(ctrl.LoggerInto(ctx, ctrl.Log), r.Reports.Put)
	}
}
