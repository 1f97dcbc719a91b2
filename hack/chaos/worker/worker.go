// Package worker runs schedules of faults, one after the other, on its own control plane with two
// managers.
package worker

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/controllers"
	"github.com/reboot-operator/reboot-operator/hack/chaos/faults"
	"github.com/reboot-operator/reboot-operator/hack/chaos/witness"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

// requestTimeout limits the requests of administrators and kubelets to an API server that may be
// down.
const requestTimeout = 2 * time.Second

// Worker is a control plane with two managers.
type Worker struct {
	cluster *embedded.Cluster
	objects client.Client
	wire    *wire.Wire
	// transport sends requests over the wire.
	transport http.RoundTripper
	faults    *faults.Faults
	witness   *witness.Witness
	replicas  []*replica
	log       logr.Logger

	// life ends with the worker, or with the error that invalidates its results.
	life   context.Context //nolint:containedctx // its own
	cancel context.CancelCauseFunc
	group  sync.WaitGroup
}

// Start starts a worker. End it with Stop.
func Start(ctx context.Context) (*Worker, error) {
	cluster, err := embedded.Start(ctx, embedded.Options{Bare: true})
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancelCause(ctx)
	l := &Worker{cluster: cluster, life: life, cancel: cancel}
	if err := l.start(life); err != nil {
		l.Stop()
		return nil, err
	}
	return l, nil
}

func (l *Worker) start(ctx context.Context) error {
	if err := l.connect(); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(l.cluster.Dir, "agents.log"))
	if err != nil {
		return fmt.Errorf("making the log of the agents: %w", err)
	}
	context.AfterFunc(ctx, func() { file.Close() })
	l.log = logr.FromSlogHandler(slog.NewJSONHandler(file, nil))
	l.group.Go(func() { l.fail(l.witness.Run(ctx)) })
	if err := l.cluster.InstallKind(ctx); err != nil {
		return err
	}
	for i := range 2 {
		r, err := newReplica(ctx, l, i)
		if err != nil {
			return err
		}
		l.replicas = append(l.replicas, r)
		l.group.Go(func() { l.fail(r.run(ctx)) })
	}
	return nil
}

// connect creates the client of administrators and kubelets, which network faults do not affect,
// the wire for everybody else, and the witness.
func (l *Worker) connect() error {
	config := l.cluster.Config()
	config.Timeout = requestTimeout
	scheme, err := controllers.Scheme()
	if err != nil {
		return err
	}
	if l.objects, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	transport, err := rest.TransportFor(l.cluster.Config())
	if err != nil {
		return fmt.Errorf("making the wire: %w", err)
	}
	l.wire, l.faults, l.witness = newWire(), faults.New(), witness.New(l.cluster.EtcdAddress(), scheme)
	l.wire.Meddle(nil, l.faults.Strike)
	l.transport = l.wire.Wrap(transport)
	return nil
}

// newWire returns a wire that does not remember requests, because there are many.
func newWire() *wire.Wire {
	w := &wire.Wire{}
	w.Forget(true)
	return w
}

func (l *Worker) fail(err error) {
	if err != nil {
		l.cancel(err)
	}
}

// KeepLogs keeps the worker's folder after Stop and returns its path.
func (l *Worker) KeepLogs() string { return l.cluster.KeepLogs() }

// Stop ends every process of the worker.
func (l *Worker) Stop() {
	l.cancel(nil)
	l.cluster.Stop()
	l.group.Wait()
}
