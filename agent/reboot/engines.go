package reboot

import (
	"context"
	"fmt"
	"sync"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/source"
)

// Reports holds the last report of each update engine. Engines report to it from their own goroutines.
type Reports struct {
	wake  Wake
	names []string

	mu    sync.Mutex
	last  map[string]engine.Report
	again map[string]source.Again
}

// NewReports waits for the reports of the engines of these names.
func NewReports(wake Wake, names ...string) *Reports {
	return &Reports{wake: wake, names: names, last: map[string]engine.Report{}, again: map[string]source.Again{}}
}

// Put takes a report and causes a reconcile.
func (r *Reports) Put(report engine.Report) {
	r.mu.Lock()
	r.last[report.Engine] = report
	r.mu.Unlock()
	r.wake.Trigger()
}

// Again is what makes an engine look once more. An engine that never asked for it is not asked.
func (r *Reports) Again(name string) source.Again {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.again[name] = make(source.Again)
	return r.again[name]
}

// confirm returns once each engine that asks for a reboot has looked once more, or with an error where one did not in time.
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

// all are the last reports of the engines, in the order of their names here; nil until each has reported, so that an
// agent that starts does not withdraw a need until the engine that has it reports.
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
