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

func (w *Worker) start(ctx context.Context) error {
	if err := w.connect(); err != nil {
		return err
	}
	file, err := os.Create(filepath.Join(w.cluster.Dir, "agents.log"))
	if err != nil {
		return fmt.Errorf("making the log of the agents: %w", err)
	}
	context.AfterFunc(ctx, func() { file.Close() })
	w.log = logr.FromSlogHandler(slog.NewJSONHandler(file, nil))
	w.group.Go(func() { w.fail(w.witness.Run(ctx)) })
	if err := w.cluster.InstallKind(ctx); err != nil {
		return err
	}
	for i := range 2 {
		r, err := newReplica(ctx, w, i)
		if err != nil {
			return err
		}
		w.replicas = append(w.replicas, r)
		w.group.Go(func() { w.fail(r.run(ctx)) })
	}
	return nil
}

// connect creates the client of administrators and kubelets, which network faults do not affect,
// the wire for everybody else, and the witness.
func (w *Worker) connect() error {
	config := w.cluster.Config()
	config.Timeout = requestTimeout
	scheme, err := controllers.Scheme()
	if err != nil {
		return err
	}
	if w.objects, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	transport, err := rest.TransportFor(w.cluster.Config())
	if err != nil {
		return fmt.Errorf("making the wire: %w", err)
	}
	w.wire, w.faults, w.witness = newWire(), faults.New(), witness.New(w.cluster.EtcdAddress(), scheme)
	w.wire.Meddle(nil, w.faults.Strike)
	w.transport = w.wire.Wrap(transport)
	return nil
}

// newWire returns a wire that does not remember requests, because there are many.
func newWire() *wire.Wire {
	w := &wire.Wire{}
	w.Forget(true)
	return w
}

func (w *Worker) fail(err error) {
	if err != nil {
		w.cancel(err)
	}
}

// KeepLogs keeps the worker's folder after Stop and returns its path.
func (w *Worker) KeepLogs() string { return w.cluster.KeepLogs() }

// Stop ends every process of the worker.
func (w *Worker) Stop() {
	w.cancel(nil)
	w.cluster.Stop()
	w.group.Wait()
}
