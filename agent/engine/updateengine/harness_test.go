package updateengine

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/reboot-operator/reboot-operator/agent/engine/enginetest"
	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
)

// harness is an Engine that runs on a real bus with a clock that only the test moves.
type harness struct {
	*enginetest.Run

	t   *testing.T
	bus *hosttest.Bus
	// host is the update_engine that startHost put on the bus.
	host   *hosttest.UpdateEngine
	engine *Engine
	// mark is the last one that settle made and the Engine logged.
	mark atomic.Int64
}

// newHarness starts a bus without any update_engine.
func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{Run: enginetest.New(t), t: t, bus: hosttest.StartFor(t)}
	h.engine = &Engine{Bus: h.Bus(h.bus.Address())}
	return h
}

// startHost puts an idle update_engine on the bus. Whatever the test does, nobody may ask it to update.
func (h *harness) startHost() *hosttest.UpdateEngine {
	h.t.Helper()
	e, err := hosttest.StartUpdateEngine(h.bus)
	h.Must(err)
	h.t.Cleanup(func() {
		if n := e.AttemptUpdateCalls(); n != 0 {
			h.t.Errorf("AttemptUpdate was called %d times", n)
		}
	})
	h.host = e
	return e
}

// run starts the Engine.
func (h *harness) run() {
	h.t.Helper()
	h.Start(h.engine, h.log)
}

// settle returns once everything broadcast so far has been taken in. The bus and the Engine keep the order of signals,
// so a mark, which is malformed, counted and logged, comes after all of them.
func (h *harness) settle() {
	h.t.Helper()
	mark := h.mark.Load() + 1
	h.Must(h.bus.Broadcast(int64(0), float64(0), fmt.Sprintf("mark %d", mark), "", int64(0)))
	h.Until("the mark to be received", func() bool { return h.mark.Load() == mark }, 0)
	h.Malformed.Add(-1)
}

// log looks for marks in what the Engine logs.
func (h *harness) log(args string) {
	if strings.Contains(args, `operation \"mark`) {
		h.mark.Add(1)
	}
}

// expectNothing checks that what was broadcast so far made no report.
func (h *harness) expectNothing() {
	h.t.Helper()
	h.settle()
	h.ExpectNoReport()
}
