package updateengine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/source"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/enginetest"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

// harness is an Engine that runs on a real bus with a clock that only the test moves.
type harness struct {
	*enginetest.Run

	t   *testing.T
	bus *hosttest.Bus
	// host is the update_engine that startHost put on the bus.
	host   *hosttest.UpdateEngine
	engine *Engine
	// probe is the number of the last probe that the Engine logged.
	probe atomic.Int64
}

// newHarness starts a bus without update_engine.
func newHarness(t *testing.T) *harness {
	t.Helper()
	h := &harness{Run: enginetest.New(t), t: t, bus: hosttest.StartFor(t)}
	h.engine = &Engine{Bus: h.Bus(h.bus.Address())}
	return h
}

// startHost puts an idle update_engine on the bus, and checks at the end of the test that nobody
// asked it to update.
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

// settle returns once all broadcasts so far were handled. The bus and the Engine keep the order of
// signals, so a probe, which is malformed, counted and logged, arrives last.
func (h *harness) settle() {
	h.t.Helper()
	probe := h.probe.Load() + 1
	h.Must(h.bus.Broadcast(int64(0), float64(0), fmt.Sprintf("probe %d", probe), "", int64(0)))
	h.Until("the probe to be received", func() bool { return h.probe.Load() == probe }, 0)
	h.Malformed.Add(-1)
}

// log looks for probes in the log of the Engine.
func (h *harness) log(args string) {
	if strings.Contains(args, `operation \"probe`) {
		h.probe.Add(1)
	}
}

// expectNothing checks that the broadcasts so far did not lead to a report.
func (h *harness) expectNothing() {
	h.t.Helper()
	h.settle()
	h.ExpectNoReport()
}

var unreachableBus = engine.Report{
	Engine: "update-engine", State: engine.Unknown, Reason: v1alpha1.ReasonEngineUnreachable,
	Message: "The system bus cannot be reached.",
}

var absent = engine.Report{
	Engine: "update-engine", State: engine.Absent, Reason: v1alpha1.ReasonEngineUnreachable,
	Message: "update_engine is not on the system bus.",
}

func TestEngine_ReadsANeedAtTheStartAndDoesNotLookWhileTheBusIsAway_Behaviour2(t *testing.T) {
	h := newHarness(t)
	h.engine.Again = make(source.Again)
	h.startHost().SetStatus(hosttest.NeedReboot("4001.0.0"))
	h.run()
	h.Expect(needed4001)
	h.Must(h.bus.Halt())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := h.engine.Again.Look(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("asked without a bus: %v", err)
	}
	h.ExpectNoReport()
}

func TestEngine_ReceivesNeedRebootOfLocksmithctlAndAPollLeavesItAlone_Behaviour1(t *testing.T) {
	h := newHarness(t)
	e := h.startHost()
	h.run()
	h.Expect(upToDate)
	h.Must(h.bus.SendNeedReboot())
	h.Expect(byBroadcast)
	calls := e.StatusCalls()
	h.Until("two polls", func() bool { return e.StatusCalls() >= calls+2 }, 5*time.Minute)
	h.expectNothing()
	// The real engine does this all day.
	h.Must(e.Emit(hosttest.Status{Op: hosttest.OpCheckingForUpdate, Version: "0.0.0"}))
	h.Must(e.Emit(hosttest.Idle()))
	h.expectNothing()
}

func TestEngine_OneRealUpdateIsOneReport_Behaviour4(t *testing.T) {
	h := newHarness(t)
	e := h.startHost()
	h.run()
	h.Expect(upToDate)
	h.Must(e.Emit(hosttest.Status{Op: hosttest.OpCheckingForUpdate, Version: "0.0.0"}))
	h.Must(e.Emit(hosttest.Status{Op: hosttest.OpUpdateAvailable, Version: "4001.0.0", Size: 201337}))
	for i := range 13 {
		progress := float64(i+1) / 13
		h.Must(e.Emit(hosttest.Status{Op: hosttest.OpDownloading, Version: "4001.0.0", Size: 201337, Progress: progress}))
	}
	h.Must(e.Emit(hosttest.Status{Op: hosttest.OpFinalizing, Version: "4001.0.0", Size: 201337}))
	h.expectNothing()
	h.Must(e.Emit(hosttest.Status{Op: hosttest.OpUpdatedNeedReboot, Version: "4001.0.0", Size: 201337}))
	h.Expect(needed4001)
	for range 50 {
		h.Must(e.Emit(hosttest.NeedReboot("4001.0.0")))
		h.Must(h.bus.SendNeedReboot())
	}
	h.expectNothing()
}

// Package updatestatus tests the other malformed bodies. These are the wrong types that the bus
// delivers.
func TestEngine_CountsAndIgnoresMalformedBroadcasts_Behaviour5(t *testing.T) {
	const op = "UPDATE_STATUS_UPDATED_NEED_REBOOT"
	bodies := [][]any{
		{},
		{op, op, op, op, op},
		{int64(0), float64(0), dbus.MakeVariant(op), "", int64(0)},
		{int64(0), float64(0), op, []string{"a"}, int64(0)},
		{int64(0), float64(0), op, map[string]dbus.Variant{"a": dbus.MakeVariant(1)}, int64(0)},
		{int64(0), float64(0), struct{ A, B string }{op, op}, "", int64(0)},
		{int64(0), float64(0), op, strings.Repeat("9", 32<<10), int64(0)},
		{int64(0), float64(0), strings.Repeat("9", 32<<10), "", int64(0)},
	}
	h := newHarness(t)
	e := h.startHost()
	h.run()
	h.Expect(upToDate)
	for _, body := range bodies {
		h.Must(h.bus.Broadcast(body...))
		h.Must(e.EmitBody(body...))
	}
	h.expectNothing()
	if got, want := h.Malformed.Load(), int64(2*len(bodies)); got != want {
		t.Errorf("%d malformed bodies counted, want %d", got, want)
	}
	h.Must(e.Emit(hosttest.NeedReboot("4001.0.0")))
	h.Expect(needed4001)
}

func TestEngine_KeepsItsNeedThroughARestartOfTheBus_Behaviour6(t *testing.T) {
	h := newHarness(t)
	e := h.startHost()
	h.run()
	h.Expect(upToDate)
	h.Must(h.bus.SendNeedReboot())
	h.Expect(byBroadcast)
	calls := e.StatusCalls()
	h.Must(h.bus.Restart())
	h.Must(e.Start())
	h.Until("the status to be read again", func() bool { return e.StatusCalls() > calls }, time.Minute)
	h.expectNothing()
}

func TestEngine_KeepsNeedAndVersionWhenUpdateEngineForgetsIt_Behaviour8(t *testing.T) {
	h := newHarness(t)
	e := h.startHost()
	h.run()
	h.Expect(upToDate)
	h.Must(e.Emit(hosttest.NeedReboot("4001.0.0")))
	h.Expect(needed4001)
	calls := e.StatusCalls()
	e.Stop()
	h.Must(e.Start()) // It now reports NEED_REBOOT with version 0.0.0.
	h.Until("the status to be read again", func() bool { return e.StatusCalls() > calls }, 0)
	h.expectNothing()
}

func TestEngine_StrictModeAcceptsTheEngineOnly(t *testing.T) {
	h := newHarness(t)
	h.engine.RequireEngineSender = true
	h.engine.Before = byBroadcast // from an agent without RequireEngineSender
	e := h.startHost()
	h.run()
	h.Expect(upToDate)
	h.Must(h.bus.SendNeedReboot()) // It is sent before the next signal.
	h.Must(e.Emit(hosttest.NeedReboot("4001.0.0")))
	h.Expect(needed4001)
}

func TestEngine_ABroadcastNeedEndsByItself_Behaviour1(t *testing.T) {
	h := newHarness(t)
	e := h.startHost()
	h.engine.Before = ending(byBroadcast, -time.Hour)
	h.run()
	h.Expect(ending(byBroadcast, -time.Hour))
	h.Until("the poll to be due", h.Clock.HasWaiters, 0)
	calls := e.StatusCalls()
	h.Clock.Step(23*time.Hour - time.Second)
	h.Until("the poll", func() bool { return e.StatusCalls() > calls }, 0)
	h.expectNothing()
	h.ExpectAfter(time.Minute, upToDate)
	h.Must(h.bus.SendNeedReboot())
	h.Expect(ending(byBroadcast, h.Clock.Since(began)))
	h.Must(e.Emit(hosttest.NeedReboot("4001.0.0")))
	h.Expect(needed4001)
	h.Until("the next poll to be due", h.Clock.HasWaiters, 0)
	calls = e.StatusCalls()
	h.Clock.Step(48 * time.Hour)
	h.Until("the poll", func() bool { return e.StatusCalls() > calls }, 0)
	h.expectNothing()
}

func TestEngine_ABroadcastNeedEndsWithoutABus_Behaviour6(t *testing.T) {
	h := newHarness(t)
	h.startHost()
	h.run()
	h.Expect(upToDate)
	h.Must(h.bus.SendNeedReboot())
	h.Expect(byBroadcast)
	h.Must(h.bus.Halt())
	h.Until("the bus to be missed", func() bool { return len(h.Reachable) == 2 }, 0)
	h.ExpectNoReport()
	h.ExpectAfter(time.Hour, unreachableBus)
	if over := h.Clock.Since(began); over < 24*time.Hour {
		t.Errorf("ended after %s", over)
	}
}

// Another sender's broadcast does not show that update_engine is on the host.
func TestEngine_ABroadcastNeedEndsWithoutAnEngine_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.engine.Optional, h.engine.Before = true, ending(byBroadcast, -time.Hour)
	h.run()
	h.Expect(ending(byBroadcast, -time.Hour))
	h.ExpectAfter(time.Hour, absent)
}
