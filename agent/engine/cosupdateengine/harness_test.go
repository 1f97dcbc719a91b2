package cosupdateengine

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/reboot-operator/reboot-operator/agent/engine/enginetest"
	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
)

// harness is an Engine that runs on a real bus with a clock that only the test moves.
type harness struct {
	*enginetest.Run

	t   *testing.T
	bus *hosttest.Bus
	// host is the update_engine that startHost put on the bus.
	host   *hosttest.COSUpdateEngine
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

// startHost puts an idle update_engine on the bus. Whatever the test does, nobody may make it do anything.
func (h *harness) startHost(platform hosttest.COSPlatform) *hosttest.COSUpdateEngine {
	h.t.Helper()
	e, err := hosttest.StartCOSUpdateEngine(h.bus, platform)
	h.Must(err)
	h.t.Cleanup(func() {
		if n := e.DrivingCalls(); n != 0 {
			h.t.Errorf("update_engine was asked %d times to do something", n)
		}
	})
	h.host = e
	return e
}

// run starts the Engine.
func (h *harness) run() {
	h.t.Helper()
	h.Start(h.engine, func(args string) {
		if strings.Contains(args, fmt.Sprintf("unknown operation %d", firstMark+h.mark.Load()+1)) {
			h.mark.Add(1)
		}
	})
}

// firstMark is an operation that nobody knows.
const firstMark = 1000

// expectNothing checks that what update_engine broadcast so far made no report. The bus and the Engine keep the order of
// signals, so a mark, which is malformed, counted and logged, comes after all of them.
func (h *harness) expectNothing() {
	h.t.Helper()
	mark := h.mark.Load() + 1
	message := protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), uint64(firstMark+mark))
	polls := 0
	h.Until("the mark to be received", func() bool {
		// Once more now and then: before the Engine knows a new owner it drops what that reports, the mark too.
		if polls%500 == 0 {
			h.Must(h.host.EmitBody("StatusUpdateAdvanced", message))
		}
		polls++
		return h.mark.Load() == mark
	}, 0)
	h.Malformed.Add(-1)
	h.ExpectNoReport()
}
