// The agent reports on its Node whether the host needs a reboot, and drains and reboots it when the
// manager grants that. The manager, which decides for the whole cluster, is in the root folder.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/reboot-operator/reboot-operator/agent/engine/rpmostree"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/reboot"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

// version is set by the linker.
var version = "dev"

func main() {
	os.Exit(run(os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

// run runs the program. It returns the exit code, and writes at most one line about an error.
func run(args []string, env func(string) string, stdout, stderr io.Writer) int {
	o, err := parse(args, env, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return fail(stderr, lifecycle.UsageError, err)
	case o.printVersion:
		fmt.Fprintf(stdout, "agent %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return 0
	}
	o.log.Start(stderr)
	config, err := lifecycle.Config()
	if err != nil {
		return fail(stderr, 1, err)
	}
	metrics.Registry.MustRegister(lifecycle.BuildInfo(version))
	ctx := ctrl.SetupSignalHandler()
	ready := newReadiness(clock.RealClock{}, renewAfter)
	agent, err := newAgent(ctx, o, ready, o.assembly(config, ready, reboot.NewMetrics(metrics.Registry)))
	if err != nil {
		return fail(stderr, 1, err)
	}
	if err := lifecycle.Run(ctx, agent); err != nil {
		return fail(stderr, 1, err)
	}
	return 0
}

func fail(stderr io.Writer, code int, err error) int {
	fmt.Fprintf(stderr, "agent: %v\n", err)
	return code
}

// assembly returns the parts of an agent with these flags. A container sees the host's uptime.
func (o options) assembly(config *rest.Config, ready readiness, metrics *reboot.Metrics) reboot.Assembly {
	return reboot.Assembly{
		Config: config, AsNode: o.identity == identityNode, Node: o.node, Self: o.self, Engines: o.engineList(), Metrics: metrics,
		Clock: clock.RealClock{},
		Host: reboot.Host{
			BootIDFile: o.bootIDFile, UptimeFile: "/proc/uptime", Root: o.hostRoot,
			Logind:       host.Logind{Connect: host.SystemBus(o.bus)},
			Coordinators: host.Coordinators{Connect: host.SystemBus(o.bus), HostRoot: o.hostRoot},
			Finalize:     rpmostree.Finalizer{Connect: host.SystemBus(o.bus), Clock: clock.RealClock{}, HostRoot: o.hostRoot}.Finalize,
		},
		Manager: func(options *manager.Options) {
			options.Cache.NewInformer = ready.newInformer
			options.Metrics, options.HealthProbeBindAddress = metricsserver.Options{BindAddress: o.metrics}, o.probes
			options.GracefulShutdownTimeout = new(lifecycle.ShutdownPeriod)
		},
	}
}

// newAgent builds the agent. Start runs it.
func newAgent(ctx context.Context, o options, ready readiness, a reboot.Assembly) (manager.Manager, error) {
	mgr, r, err := a.New(ctx)
	if err != nil {
		return nil, err
	}
	err = errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("node-written", r.CheckWrites), ready.add(mgr),
		addHostChanges(mgr, r, o, ready))
	if err != nil {
		return nil, err
	}
	for _, name := range o.engineList() {
		if err := mgr.Add(runEngine(name, r, o, a.Metrics)); err != nil {
			return nil, fmt.Errorf("adding engine %s: %w", name, err)
		}
	}
	if o.drive {
		if err := mgr.Add(driveRPMOSTree(r, o, a.Metrics)); err != nil {
			return nil, fmt.Errorf("adding the driver of rpm-ostree: %w", err)
		}
	}
	return mgr, nil
}

// addHostChanges makes the reconciler check the host at once when inhibitors, or other programs
// that may reboot it, may have changed. Every agent always has this connection to the bus, so
// readiness depends on it.
func addHostChanges(mgr manager.Manager, r *reboot.Reconciler, o options, ready readiness) error {
	changes := host.Changes{Connect: ready.bus.connect(host.SystemBus(o.bus)), Clock: clock.RealClock{}, Changed: r.Wake.Trigger}
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return changes.Start(ctrl.LoggerInto(ctx, ctrl.Log))
	}))
	if err != nil {
		return fmt.Errorf("adding what detects changes of the host: %w", err)
	}
	return nil
}
