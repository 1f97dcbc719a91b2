// Package enginetest runs an update engine for a test, on a clock that only the test moves.
package enginetest

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/service"
	"github.com/reboot-operator/reboot-operator/agent/engine/source"
	"github.com/reboot-operator/reboot-operator/agent/host"
)

const (
	// patience is the time after which a test gives up waiting.
	patience = time.Minute
	// stopLimit is the time in which an engine must stop (behaviour 58).
	stopLimit = 5 * time.Second
)

// TB is the part of *testing.T that a Run needs.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(func())
	Context() context.Context
}

// Run runs an engine and records its reports.
type Run struct {
	// Clock is the clock of the engine.
	Clock *clocktesting.FakeClock
	// Reports are the reports that no Expect has received yet.
	Reports chan engine.Report
	// Reachable receives each change of whether the engine can be queried.
	Reachable chan bool
	// Malformed counts malformed messages.
	Malformed atomic.Int64

	t TB
}

// New makes a Run whose engine is not started yet.
func New(t TB) *Run {
	return &Run{
		Clock:   clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)),
		Reports: make(chan engine.Report, 100), Reachable: make(chan bool, 100), t: t,
	}
}

// Options returns the options of an engine that this Run starts.
func (r *Run) Options() source.Options {
	return source.Options{Clock: r.Clock, Reachable: func(reachable bool) { r.Reachable <- reachable }}
}

// Bus returns the options of an engine on the bus at the given address.
func (r *Run) Bus(address string) service.Bus {
	return service.Bus{Options: r.Options(), Connect: host.SystemBus(address), Malformed: func() { r.Malformed.Add(1) }}
}

// Start runs an engine and stops it when the test ends; it fails the test if the engine does not
// stop in time. Each log line is passed to log, which may be nil.
func (r *Run) Start(e source.Engine, log func(args string)) {
	r.t.Helper()
	logger := funcr.New(func(_, args string) {
		if log != nil {
			log(args)
		}
	}, funcr.Options{Verbosity: 4})
	// The context of the test ends before its cleanups run.
	ctx := logr.NewContext(r.t.Context(), logger)
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.Run(ctx, func(report engine.Report) { r.Reports <- report })
	}()
	r.t.Cleanup(func() {
		timeout := clock.RealClock{}.NewTimer(stopLimit)
		defer timeout.Stop()
		select {
		case <-done:
		case <-timeout.C():
			r.t.Errorf("the engine does not stop (behaviour 58)")
		}
	})
}

// Must fails the test on an error.
func (r *Run) Must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("%v", err)
	}
}

// Expect waits for the next report.
func (r *Run) Expect(want engine.Report) {
	r.t.Helper()
	r.ExpectAfter(0, want)
}

// ExpectAfter advances the clock step by step until the next report arrives.
func (r *Run) ExpectAfter(step time.Duration, want engine.Report) {
	r.t.Helper()
	r.Until("a report: "+want.Message, func() bool { return len(r.Reports) > 0 }, step)
	if diff := cmp.Diff(want, <-r.Reports); diff != "" {
		r.t.Fatalf("report (-want +got):\n%s", diff)
	}
}

// ExpectNow takes the next report, which must have arrived already.
func (r *Run) ExpectNow(want engine.Report) {
	r.t.Helper()
	if len(r.Reports) == 0 {
		r.t.Fatalf("no report yet: want %q", want.Message)
	}
	r.Expect(want)
}

// Until polls for a condition. If step is above zero, it advances the clock whenever the engine
// waits for it.
func (r *Run) Until(description string, condition func() bool, step time.Duration) {
	r.t.Helper()
	deadline := clock.RealClock{}.NewTimer(patience)
	defer deadline.Stop()
	tick := clock.RealClock{}.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		if step > 0 && r.Clock.HasWaiters() {
			r.Clock.Step(step)
		}
		select {
		case <-tick.C():
		case <-deadline.C():
			r.t.Fatalf("waited too long for %s", description)
		}
	}
}

// ExpectNoReport checks that no report is waiting. Everything that could cause one must have
// happened already.
func (r *Run) ExpectNoReport() {
	r.t.Helper()
	if len(r.Reports) > 0 {
		r.t.Fatalf("unexpected report %+v", <-r.Reports)
	}
}
