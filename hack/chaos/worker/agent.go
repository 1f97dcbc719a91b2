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

	agenthost "github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/reboot"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/machine"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

// agent is one life of a machine's agent. It has the shipped reconciler, drains and lookout, on a line of its own that is cut when it
// is killed.
type agent struct {
	host       *host
	line       *wire.Wire
	reconciler *reboot.Reconciler
	cancel     context.CancelFunc
	// started is closed when all of it runs, done when nothing does any more.
	started <-chan struct{}
	done    chan struct{}
}

// kill ends the agent where it is: nothing it does from now on has an effect. A manager of controller-runtime that is asked to end
// while it starts never ends. So one that has not started may still read until it has, and ends then.
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

// startAgent puts an agent together as its main does, and runs it in the background. It outlives ctx.
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
		// Its end is a kill; an error before is like a crash, and the machine's kubelet would start it anew.
		if err := mgr.Start(ctx); err != nil && ctx.Err() == nil {
			h.run.fail(fmt.Errorf("running the agent of %s: %w", node, err))
		}
	}()
	return a, nil
}

func (a *agent) newManager(ctx context.Context, node string, log logr.Logger) (mgr manager.Manager, err error) {
	mgr, a.reconciler, err = reboot.Assembly{
		Config: &rest.Config{Host: a.host.run.worker.cluster.Config().Host, Transport: a.line.Wrap(a.host.run.worker.transport)}, Node: node, Engines: []string{machine.Engine},
		Host:    reboot.Host{BootIDFile: a.host.bootFile(), Root: a.host.dir, Logind: logind{a}, Coordinators: machine.Alone{}},
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

// logind is the machine's, to one life of the agent.
type logind struct{ *agent }

// BlockInhibitors implements reboot.Logind.
func (l logind) BlockInhibitors(ctx context.Context) ([]agenthost.Inhibitor, error) {
	return nil, l.line.Pass(ctx)
}

// Refuses implements reboot.Logind.
func (l logind) Refuses(ctx context.Context) (string, error) { return "", l.line.Pass(ctx) }

// GoingDown implements reboot.Logind.
func (l logind) GoingDown(ctx context.Context) (bool, error) {
	return l.host.IsLeaving(), l.line.Pass(ctx)
}

// Reboot implements reboot.Logind.
func (l logind) Reboot(ctx context.Context, _ v1alpha1.Obstacle) error {
	if err := l.line.Pass(ctx); err != nil {
		return err
	}
	return l.host.goDown(l.agent)
}
