package updateengine

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
)

// patience is how long something may take before a test gives up on it.
const patience = 20 * time.Second

// harness is an Engine that runs on a real bus with a clock that only the test moves.
type harness struct {
	t   *testing.T
	bus *hosttest.Bus
	// host is the update_engine that startHost put on the bus.
	host      *hosttest.UpdateEngine
	clock     *clocktesting.FakeClock
	engine    *Engine
	reports   chan engine.Report
	reachable chan bool
	malformed atomic.Int64
	// mark is the last one that settle made and the Engine logged.
	mark atomic.Int64
}

// newHarness starts a bus without any update_engine.
func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{
		t: t, bus: hosttest.StartFor(t), clock: clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0)),
		reports: make(chan engine.Report, 100), reachable: make(chan bool, 100),
	}
	h.engine = &Engine{
		Connect: host.SystemBus(h.bus.Address()), Clock: h.clock,
		Malformed: func() { h.malformed.Add(1) },
		Reachable: func(reachable bool) { h.reachable <- reachable },
	}
	return h
}

// startHost puts an idle update_engine on the bus. Whatever the test does, nobody may ask it to update.
func (h *harness) startHost() *hosttest.UpdateEngine {
	h.t.Helper()
	e, err := h.bus.StartUpdateEngine()
	h.must(err)
	h.t.Cleanup(func() {
		if n := e.AttemptUpdateCalls(); n != 0 {
			h.t.Errorf("AttemptUpdate was called %d times", n)
		}
	})
	h.host = e
	return e
}

// run starts the Engine; it is stopped, in time and without an error, when the test ends.
func (h *harness) run() {
	h.t.Helper()
	ctx, cancel := context.WithCancel(logr.NewContext(context.Background(), funcr.New(h.log, funcr.Options{Verbosity: 4})))
	done := make(chan error, 1)
	go func() { done <- h.engine.Run(ctx, func(r engine.Report) { h.reports <- r }) }()
	h.t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			h.must(err)
		case <-time.After(5 * time.Second):
			h.t.Error("the engine does not stop (behaviour 58)")
		}
	})
}

func (h *harness) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// expect waits for the next report.
func (h *harness) expect(want engine.Report) {
	h.t.Helper()
	select {
	case got := <-h.reports:
		if diff := cmp.Diff(want, got); diff != "" {
			h.t.Fatalf("report (-want +got):\n%s", diff)
		}
	case <-time.After(patience):
		h.t.Fatalf("no report; wanted %+v", want)
	}
}

// expectAfter lets time pass, a step at a time, until the next report is there.
func (h *harness) expectAfter(step time.Duration, want engine.Report) {
	h.t.Helper()
	h.until("a report", func() bool { return len(h.reports) > 0 }, step)
	h.expect(want)
}

// until polls for a condition. A step above zero lets time pass whenever the Engine waits for the clock.
func (h *harness) until(what string, condition func() bool, step time.Duration) {
	h.t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		if step > 0 && h.clock.HasWaiters() {
			h.clock.Step(step)
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			h.t.Fatalf("waited in vain for %s", what)
		}
	}
}

// settle returns once everything broadcast so far has been taken in. The bus and the Engine keep the order of signals,
// so a mark, which is malformed, counted and logged, comes after all of them.
func (h *harness) settle() {
	h.t.Helper()
	mark := h.mark.Load() + 1
	h.must(h.bus.Broadcast(int64(0), float64(0), fmt.Sprintf("mark %d", mark), "", int64(0)))
	h.until("the mark to be heard", func() bool { return h.mark.Load() == mark }, 0)
	h.malformed.Add(-1)
}

// log looks for marks in what the Engine logs.
func (h *harness) log(_, args string) {
	if strings.Contains(args, `operation \"mark`) {
		h.mark.Add(1)
	}
}

// expectNothing checks that what was broadcast so far made no report.
func (h *harness) expectNothing() {
	h.t.Helper()
	h.settle()
	if len(h.reports) > 0 {
		h.t.Fatalf("unexpected report %+v", <-h.reports)
	}
}

// resetStatus does what `update_engine_client -reset_status` does.
func (h *harness) resetStatus() {
	h.t.Helper()
	conn, err := h.bus.Connect()
	h.must(err)
	defer func() { _ = conn.Close() }()
	h.must(conn.Object(busName, objectPath).Call("com.coreos.update1.Manager.ResetStatus", 0).Err)
}

// impostor is a service that owns update_engine's name and answers GetStatus as the test says.
func (h *harness) impostor(answer func() (any, *dbus.Error)) *dbus.Conn {
	h.t.Helper()
	conn, err := h.bus.Connect()
	h.must(err)
	h.t.Cleanup(func() { _ = conn.Close() })
	methods := map[string]any{"GetStatus": answer}
	h.must(conn.ExportMethodTable(methods, objectPath, "com.coreos.update1.Manager"))
	_, err = conn.RequestName(busName, dbus.NameFlagDoNotQueue)
	h.must(err)
	return conn
}
