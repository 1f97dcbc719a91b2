package cosupdateengine

import (
	"testing"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
)

// platforms is every way in which a COS reports its status.
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

func TestEngine_AnInstallIsNoNeed_Behaviour9(t *testing.T) {
	install := hosttest.COSStatus{Op: hosttest.COSUpdatedNeedReboot, Version: "17800.147.54", IsInstall: true}
	for name, platform := range map[string]hosttest.COSPlatform{
		"current": hosttest.COSCurrent,
		// Its plain StatusUpdate reports NEED_REBOOT and does not report that it is about an install.
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

func TestEngine_CountsAndIgnoresMalformedBroadcasts_Behaviour5(t *testing.T) {
	bodies := [][]any{
		{},
		{"text"},
		{int64(6)},
		{[]byte("\x18\x06"), "more"},
		{[]byte("\x18")},
		{[]byte("\x18\x63")},
		{[]byte("\x22\x02\xff\xff")},
		{dbus.MakeVariant([]byte("\x18\x06"))},
		{[]string{"\x18", "\x06"}},
		{make([]byte, 128<<10)},
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

func TestEngine_IgnoresBroadcastsOfStrangers(t *testing.T) {
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
	h.Must(e.Start()) // It reports NEED_REBOOT with version 0.0.0.0 now.
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
