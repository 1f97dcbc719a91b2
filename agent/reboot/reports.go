package reboot

import (
	"context"
	"fmt"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/source"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
)

// Reports holds the last report of each update engine. Engines call Put from their own goroutines.
type Reports struct {
	wake  Wake
	names []string

	mu    sync.Mutex
	last  map[string]engine.Report
	again map[string]source.Again
}

// newReports returns Reports for the engines of these names.
func newReports(wake Wake, names ...string) *Reports {
	return &Reports{wake: wake, names: names, last: map[string]engine.Report{}, again: map[string]source.Again{}}
}

// Put stores a report and triggers a reconcile.
func (r *Reports) Put(report engine.Report) {
	r.mu.Lock()
	r.last[report.Engine] = report
	r.mu.Unlock()
	r.wake.Trigger()
}

// Again returns the signal that makes an engine check its host again. It is ignored by an engine
// that does not listen for it.
func (r *Reports) Again(name string) source.Again {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again[name] = make(source.Again)
	return r.again[name]
}

// confirm returns once each engine that requires a reboot has checked again, or with an error if
// one of them was too late.
func (r *Reports) confirm(ctx context.Context) error {
	for _, report := range r.all() {
		r.mu.Lock()
		again := r.again[report.Engine]
		r.mu.Unlock()
		if report.State != engine.Needed || again == nil {
			continue
		}
		if err := again.Look(ctx); err != nil {
			return fmt.Errorf("asking engine %s once more: %w", report.Engine, err)
		}
	}
	return nil
}

// all returns the last reports of the engines, in the order of names. It is nil until each of them
// has reported, so that a starting agent does not withdraw the need of an engine that has not
// reported yet.
func (r *Reports) all() []engine.Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	reports := make([]engine.Report, 0, len(r.names))
	for _, name := range r.names {
		report, all := r.last[name]
		if !all {
			return nil
		}
		reports = append(reports, report)
	}
	return reports
}

// Before returns what an engine reported in this boot to an earlier process of the agent, or the
// zero Report. A state other than Needed becomes Unknown.
func (r *Reconciler) Before(ctx context.Context, name string) (engine.Report, error) {
	bootID, err := host.BootID(r.Host.BootIDFile)
	if err != nil {
		return engine.Report{}, err
	}
	node, err := r.writer.cached(ctx)
	if client.IgnoreNotFound(err) != nil {
		return engine.Report{}, fmt.Errorf("reading the Node: %w", err)
	}
	before, err := protocol.ParseEngines(node.Annotations)
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("Cannot read what the engines reported before", "reason", err.Error())
		return engine.Report{}, nil // The first report replaces it.
	}
	return step.Before(before, name, bootID), nil
}
