package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/reboot"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

const (
	// An agent writes a few times per reboot. The drain itself limits evictions: it has few requests under way at once. The limits
	// of drains are for errors only: emptying a node of 250 pods stays below them.
	qps, burst           = 5, 10
	drainQPS, drainBurst = 100, 500
)

// identities are the two an agent acts as: the node for the Node, its pods and its events, and itself for the rest.
type identities struct{ node, own *rest.Config }

func newIdentities(config *rest.Config, o options) identities {
	own := rest.AddUserAgent(rest.CopyConfig(config), v1alpha1.FieldOwnerAgent)
	own.QPS, own.Burst = qps, burst
	node := rest.CopyConfig(own)
	if o.identity == identityNode {
		node.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + o.node}
	}
	return identities{node: node, own: own}
}

// environment is what an agent runs in, beside what its flags name.
type environment struct {
	// uptimeFile has how long the host has been up.
	uptimeFile string
	// clock is what the agent decides by.
	clock clock.Clock
	// queue changes the queue of the controller.
	queue func(*controller.Options)
	// renewAfter and patience are those of readiness.
	renewAfter, patience time.Duration
}

// hostEnvironment is that of the program: a container sees the host's uptime.
func hostEnvironment() environment {
	return environment{
		uptimeFile: "/proc/uptime", clock: clock.RealClock{}, queue: func(*controller.Options) {}, renewAfter: renewAfter, patience: patience,
	}
}

// newAgent puts the agent together; Start runs it.
func newAgent(ctx context.Context, config *rest.Config, o options, in environment, metrics *reboot.Metrics) (manager.Manager, error) {
	as := newIdentities(config, o)
	ready := newReadiness(clock.RealClock{}, in.patience)
	mgr, err := newManager(as.node, o, ready, in.renewAfter)
	if err != nil {
		return nil, err
	}
	policies, err := client.New(as.own, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("making the client for policies: %w", err)
	}
	drainer, err := newDrainer(as, o, metrics)
	if err != nil {
		return nil, err
	}
	r := reboot.New(reboot.Config{
		Node: o.node,
		Host: reboot.Host{
			BootIDFile: o.bootIDFile, UptimeFile: in.uptimeFile, Root: o.hostRoot,
			Logind:       host.Logind{Connect: host.SystemBus(o.bus)},
			Coordinators: host.Coordinators{Connect: host.SystemBus(o.bus), HostRoot: o.hostRoot},
		},
		Client:   mgr.GetClient(),
		Live:     mgr.GetAPIReader(),
		Policies: policies,
		Drainer:  func(policy string) reboot.Drainer { return drainer(policy) },
		Looker:   drainer(""),
		Engines:  o.engineList(),
		Recorder: mgr.GetEventRecorder(v1alpha1.FieldOwnerAgent),
		Clock:    in.clock,
	})
	if err := addHostChanges(mgr, r, o, ready); err != nil {
		return nil, err
	}
	if err := r.SetupWithManager(ctx, mgr, in.queue); err != nil {
		return nil, err
	}
	for _, name := range o.engineList() {
		if err := mgr.Add(runEngine(name, r, o, metrics)); err != nil {
			return nil, fmt.Errorf("adding engine %s: %w", name, err)
		}
	}
	if o.drive {
		if err := mgr.Add(driveRPMOSTree(r, o, metrics)); err != nil {
			return nil, fmt.Errorf("adding the driver of rpm-ostree: %w", err)
		}
	}
	return mgr, nil
}

// newManager makes the manager, with its probes.
func newManager(config *rest.Config, o options, ready readiness, renewAfter time.Duration) (manager.Manager, error) {
	options, err := reboot.ManagerOptions(o.node)
	if err != nil {
		return nil, err
	}
	options.Cache.NewInformer = ready.node.informer(renewAfter)
	options.Metrics, options.HealthProbeBindAddress = metricsserver.Options{BindAddress: o.metrics}, o.probes
	options.GracefulShutdownTimeout = new(lifecycle.ShutdownPeriod)
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	return mgr, errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), ready.add(mgr))
}

// newDrainer makes the drainer of each policy: they differ in the name under which evictions are counted.
func newDrainer(as identities, o options, metrics *reboot.Metrics) (func(policy string) *drain.Drainer, error) {
	pods, err := newDrainClient(as.node)
	if err != nil {
		return nil, fmt.Errorf("making the client for pods: %w", err)
	}
	budgets, err := newDrainClient(as.own)
	if err != nil {
		return nil, fmt.Errorf("making the client for PodDisruptionBudgets: %w", err)
	}
	return func(policy string) *drain.Drainer {
		return &drain.Drainer{
			Pods: pods, Policy: budgets, Self: o.self, Clock: clock.RealClock{}, Evictions: metrics.Evicted(policy),
		}
	}, nil
}

func newDrainClient(config *rest.Config) (*drain.Client, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = drainQPS, drainBurst
	return drain.NewClient(config)
}

// addHostChanges makes the reconciler look at the host at once when inhibitors, or other programs that may reboot it, may
// have changed. Every agent is always connected to the bus for that, so readiness follows this connection.
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
