package worker

import (
	"context"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/reboot-operator/reboot-operator/agent/reboot"
	"github.com/reboot-operator/reboot-operator/hack/machine"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

// agent is one run of a machine's agent: the shipped reconciler, drains and obstacle watch. A kill
// cuts its own line to the API server.
type agent struct {
	host       *host
	line       *wire.Wire
	reconciler *reboot.Reconciler
	cancel     context.CancelFunc
	// started is closed when everything runs, and done when everything has stopped.
	started <-chan struct{}
	done    chan struct{}
}

// kill stops the agent at once: nothing it does from now on has an effect. A controller-runtime
// manager that is stopped while it starts never ends, so kill lets such an agent finish its start
// first.
func (a *agent) kill() {
	end := func() {
		a.line.Cut()
		a.cancel()
	}
	select {
	case <-a.started:
		end()
		a.host.run.agents.Go(func() { <-a.done })
	default:
		a.line.Meddle(wire.IsWrite, wire.Refuse)
		go func() {
			select {
			case <-a.started:
				end()
			case <-a.done:
			}
		}()
	}
}

// startAgent assembles an agent as its main package does, and runs it in the background. The agent
// outlives ctx.
func startAgent(ctx context.Context, h *host, node string, log logr.Logger) (*agent, error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a := &agent{host: h, line: newWire(), cancel: cancel, done: make(chan struct{})}
	mgr, err := a.newManager(ctx, node, log)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("making the agent of %s: %w", node, err)
	}
	a.started = mgr.Elected()
	go func() {
		defer close(a.done)
		// An error before the kill is like a crash: the kubelet would restart the agent.
		if err := mgr.Start(ctx); err != nil && ctx.Err() == nil {
			h.run.fail(fmt.Errorf("running the agent of %s: %w", node, err))
		}
	}()
	return a, nil
}

func (a *agent) newManager(ctx context.Context, node string, log logr.Logger) (mgr manager.Manager, err error) {
	mgr, a.reconciler, err = reboot.Assembly{
		Config: &rest.Config{Host: a.host.run.worker.cluster.Config().Host, Transport: a.line.Wrap(a.host.run.worker.transport)}, Node: node, Engines: []string{machine.Engine},
		Host:    reboot.Host{BootIDFile: a.host.BootIDFile(), UptimeFile: a.host.UptimeFile(), Root: a.host.dir, Logind: machine.Logind{Machine: a.host.Machine, Pass: a.line.Pass, Call: func() error { return a.host.goDown(a) }}, Coordinators: machine.Alone{}},
		Metrics: reboot.NewMetrics(prometheus.NewRegistry()), Clock: hasty{&a.host.Clock},
		Manager: func(options *manager.Options) {
			options.Logger = log.WithValues("agent", node)
			options.Metrics, options.HealthProbeBindAddress = metricsserver.Options{BindAddress: "0"}, "0"
			options.GracefulShutdownTimeout = new(100 * time.Millisecond)
			testenv.SeveralManagers(options)
		},
	}.New(ctx)
	if err != nil {
		return nil, err
	}
	return mgr, mgr.Add(manager.RunnableFunc(func(context.Context) error {
		a.host.Listen(a.reconciler.Reports)
		return nil
	}))
}
