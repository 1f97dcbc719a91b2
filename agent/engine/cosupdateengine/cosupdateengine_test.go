package cosupdateengine

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/godbus/dbus/v5"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/reboot-operator/reboot-operator/hack/enginetest"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

// harness is an Engine that runs on a real bus with a clock that only the test moves.
type harness struct {
	*enginetest.Run

	t   *testing.T
	bus *hosttest.Bus
	// host is the update_engine that startHost put on the bus.
	host   *hosttest.COSUpdateEngine
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
// made it do anything.
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
		if strings.Contains(args, fmt.Sprintf("unknown operation %d", firstProbe+h.probe.Load()+1)) {
			h.probe.Add(1)
		}
	})
}

// firstProbe is an unknown operation.
const firstProbe = 1000

// expectNothing checks that the broadcasts so far did not lead to a report. The bus and the Engine
// keep the order of signals, so a probe, which is malformed, counted and logged, arrives last.
func (h *harness) expectNothing() {
	h.t.Helper()
	probe := h.probe.Load() + 1
	message := protowire.AppendVarint(protowire.AppendTag(nil, 3, protowire.VarintType), uint64(firstProbe+probe))
	polls := 0
	h.Until("the probe to be received", func() bool {
		// The probe is repeated now and then, because the Engine drops signals of a new owner that
		// it does not know yet.
		if polls%500 == 0 {
			h.Must(h.host.EmitBody("StatusUpdateAdvanced", message))
		}
		polls++
		return h.probe.Load() == probe
	}, 0)
	h.Malformed.Add(-1)
	h.ExpectNoReport()
}

// platforms are the ways in which a COS reports its status.
var platforms = map[string]hosttest.COSPlatform{
	"current":         hosttest.COSCurrent,
	"transitional":    hosttest.COSTransitional,
	"before advanced": hosttest.COSBeforeAdvanced,
}

func TestEngine_OneRealUpdateIsOneReport_Behaviours4And9And10(t *testing.T) {
	for name, platform := range platforms {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			e := h.startHost(platform)
			h.run()
			h.Expect(upToDate)
			h.Must(e.Emit(hosttest.COSStatus{Op: hosttest.COSCheckingForUpdate, Version: "0.0.0.0"}))
			h.Must(e.Emit(hosttest.COSStatus{Op: hosttest.COSUpdateAvailable, Version: "17800.147.54", Size: 201337}))
			for i := range 5 {
				h.Must(e.Emit(hosttest.COSStatus{
					LastChecked: 1_700_000_000, Op: hosttest.COSDownloading, Version: "17800.147.54", Progress: float64(i+1) / 5,
				}))
			}
			h.Must(e.Emit(hosttest.COSStatus{Op: hosttest.COSVerifying, Version: "17800.147.54"}))
			h.Must(e.Emit(hosttest.COSStatus{Op: hosttest.COSFinalizing, Version: "17800.147.54"}))
			h.expectNothing()
			h.Must(e.Emit(hosttest.COSNeedReboot("17800.147.54")))
			h.Expect(needed17800)
			for range 20 {
				h.Must(e.Emit(hosttest.COSNeedReboot("17800.147.54")))
			}
			h.expectNothing()
			h.Must(e.Emit(hosttest.COSStatus{}))
			h.Expect(upToDate)
		})
	}
}

// With repeated updates on, update_engine checks periodically while an update waits for its reboot.
func TestEngine_ReadsANeedThatAPeriodicCheckDoesNotWithdraw_Behaviours2And9And10(t *testing.T) {
	for name, platform := range platforms {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			e := h.startHost(platform)
			e.SetStatus(hosttest.COSNeedReboot("17800.147.54"))
			h.run()
			h.Expect(needed17800)
			for range 3 {
				h.Must(e.Emit(hosttest.COSStatus{Op: hosttest.COSCheckingForUpdate, Version: "0.0.0.0"}))
				h.Must(e.Emit(hosttest.COSNeedReboot("17800.147.54")))
			}
			h.expectNothing()
			h.Must(e.Emit(hosttest.COSStatus{Op: hosttest.COSCheckingForUpdate, Version: "0.0.0.0"}))
			h.Must(e.Emit(hosttest.COSStatus{Op: hosttest.COSDownloading, Version: "17900.1.2"}))
			h.Expect(upToDate)
			h.Must(e.Emit(hosttest.COSStatus{Op: hosttest.COSFinalizing, Version: "17900.1.2"}))
			h.Must(e.Emit(hosttest.COSNeedReboot("17900.1.2")))
			h.Expect(needed17900)
		})
	}
}

func TestEngine_AnInstallIsNotANeed_Behaviour9(t *testing.T) {
	install := hosttest.COSStatus{Op: hosttest.COSUpdatedNeedReboot, Version: "17800.147.54", IsInstall: true}
	for name, platform := range map[string]hosttest.COSPlatform{
		"current": hosttest.COSCurrent,
		// The plain StatusUpdate of this platform reports NEED_REBOOT without saying that it is
		// about an install.
		"transitional": hosttest.COSTransitional,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			e := h.startHost(platform)
			e.SetStatus(install)
			h.run()
			h.Expect(upToDate)
			h.Must(e.Emit(install))
			h.expectNothing()
		})
	}
}

// TestDecodeAdvanced_RefusesMalformedBodies_Behaviour5 covers the other malformed bodies. These are
// the wrong types that the bus delivers.
func TestEngine_CountsAndIgnoresMalformedBroadcasts_Behaviour5(t *testing.T) {
	bodies := [][]any{
		{},
		{[]byte("\x18")},
		{dbus.MakeVariant([]byte("\x18\x06"))},
		{[]string{"\x18", "\x06"}},
		{make([]byte, 32<<10)},
		{int64(0), 0.0, "UPDATE_STATUS_UPDATED_NEED_REBOOT", "17800.147.54", int64(0)},
	}
	h := newHarness(t)
	e := h.startHost(hosttest.COSCurrent)
	h.run()
	h.Expect(upToDate)
	for _, body := range bodies {
		h.Must(e.EmitBody("StatusUpdateAdvanced", body...))
	}
	h.expectNothing()
	if got, want := h.Malformed.Load(), int64(len(bodies)); got != want {
		t.Errorf("%d malformed bodies counted, want %d", got, want)
	}
	h.Must(e.Emit(hosttest.COSNeedReboot("17800.147.54")))
	h.Expect(needed17800)
}

func TestEngine_IgnoresBroadcastsOfOtherSenders(t *testing.T) {
	h := newHarness(t)
	h.startHost(hosttest.COSCurrent)
	h.run()
	h.Expect(upToDate)
	h.Must(h.bus.ForgeCOS(hosttest.COSNeedReboot("17800.147.54")))
	h.expectNothing()
}

func TestEngine_KeepsNeedAndVersionWhenUpdateEngineForgetsIt_Behaviour8(t *testing.T) {
	h := newHarness(t)
	e := h.startHost(hosttest.COSTransitional)
	h.run()
	h.Expect(upToDate)
	h.Must(e.Emit(hosttest.COSNeedReboot("17800.147.54")))
	h.Expect(needed17800)
	calls := e.StatusCalls()
	e.Stop()
	h.Must(e.Start()) // It now reports NEED_REBOOT with version 0.0.0.0.
	h.Until("the status to be read again", func() bool { return e.StatusCalls() > calls }, 0)
	h.expectNothing()
}

func TestEngine_ReadsAPlatformWithTheAdvancedStatus_Behaviour10(t *testing.T) {
	h := newHarness(t)
	old := h.startHost(hosttest.COSBeforeAdvanced)
	h.run()
	h.Expect(upToDate)
	old.Stop()
	h.Expect(absent)
	h.startHost(hosttest.COSTransitional)
	h.Expect(upToDate)
	h.Must(h.host.Emit(hosttest.COSStatus{Op: hosttest.COSUpdatedNeedReboot, Version: "17800.147.54", IsInstall: true}))
	h.expectNothing()
}

func TestEngine_RestartedAgentKeepsItsNeedWhileUpdateEngineIsAway(t *testing.T) {
	h := newHarness(t)
	h.engine.Before = needed17800
	h.run()
	h.Expect(needed17800)
	h.startHost(hosttest.COSCurrent)
	h.Expect(upToDate)
}

func TestEngine_ThatLeavesWhileItIsAskedIsAbsent_Behaviour7(t *testing.T) {
	h := newHarness(t)
	h.startHost(hosttest.COSCurrent).CrashWhenAsked()
	h.run()
	h.Expect(absent)
}
