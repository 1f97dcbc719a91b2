package hosttest

import (
	"errors"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
)

// These tests compare the fakes with the real services. Tests of the agent would pass even if a
// fake were more lenient or stricter than the real service.

// listen connects to the bus and receives every StatusUpdate.
func listen(t *testing.T, bus *Bus) (*dbus.Conn, <-chan *dbus.Signal) {
	t.Helper()
	conn, err := bus.Connect()
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	must(t, conn.AddMatchSignal(dbus.WithMatchInterface(engineInterface)))
	return conn, signals
}

// next returns the next StatusUpdate. It skips NameAcquired of the bus.
func next(signals <-chan *dbus.Signal) *dbus.Signal {
	for signal := range signals {
		if signal.Path == enginePath {
			return signal
		}
	}
	return nil
}

// status calls GetStatus of update_engine.
func status(t *testing.T, conn *dbus.Conn) Status {
	t.Helper()
	var s Status
	call := conn.Object(engineName, enginePath).Call(engineInterface+".GetStatus", 0)
	must(t, call.Store(&s.LastChecked, &s.Progress, &s.Op, &s.Version, &s.Size))
	return s
}

func TestUpdateEngine_ResetStatusEmitsNothing(t *testing.T) {
	bus := StartFor(t)
	engine, err := StartUpdateEngine(bus)
	must(t, err)
	conn, signals := listen(t, bus)
	must(t, engine.Emit(NeedReboot("4001.0.0")))
	next(signals)
	must(t, conn.Object(engineName, enginePath).Call(engineInterface+".ResetStatus", 0).Err)
	if diff := cmp.Diff(Idle(), status(t, conn)); diff != "" {
		t.Errorf("status after the reset (-want +got):\n%s", diff)
	}
	// Messages of one connection keep their order, so a signal of the reset would have come before
	// this reply.
	for range len(signals) {
		if signal := <-signals; signal.Path == enginePath {
			t.Errorf("the reset was broadcast: %v", signal)
		}
	}
}

func TestUpdateEngine_RestartKeepsTheNeedAndForgetsTheVersion(t *testing.T) {
	bus := StartFor(t)
	engine, err := StartUpdateEngine(bus)
	must(t, err)
	engine.SetStatus(NeedReboot("4001.0.0"))
	must(t, bus.Restart())
	conn, signals := listen(t, bus)
	must(t, engine.Start())
	if diff := cmp.Diff(NeedReboot("0.0.0").body(), next(signals).Body); diff != "" {
		t.Errorf("broadcast at the start (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(NeedReboot("0.0.0"), status(t, conn)); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestLogind_GenerationsTreatBlockInhibitorsAsSystemdDoes(t *testing.T) {
	const denied, invalid, unknown = "org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.DBus.Error.InvalidArgs",
		"org.freedesktop.DBus.Error.UnknownMethod"
	own, other := BlockShutdown("backup", "running"), BlockShutdown("backup", "running")
	other.UID++
	weak, otherWeak := own, other
	weak.Mode, otherWeak.Mode = "block-weak", "block-weak"
	cases := map[string]struct {
		systemd                    Systemd
		lock                       Inhibitor
		reboot, none, check, skips string
	}{
		"current":                           {SystemdCurrent, own, denied, denied, denied, ""},
		"current, another uid's lock":       {SystemdCurrent, other, denied, denied, denied, ""},
		"current, a weak lock":              {SystemdCurrent, weak, "", "", "", ""},
		"current, another uid's weak lock":  {SystemdCurrent, otherWeak, "", "", denied, ""},
		"before 257":                        {SystemdBefore257, own, "", "", "", invalid},
		"before 257, another uid's lock":    {SystemdBefore257, other, "", "", denied, invalid},
		"without flags":                     {SystemdWithoutFlags, own, "", unknown, unknown, unknown},
		"without flags, another uid's lock": {SystemdWithoutFlags, other, "", unknown, unknown, unknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bus := StartFor(t)
			logind, err := StartLogind(bus)
			must(t, err)
			logind.SetSystemd(tc.systemd)
			logind.SetInhibitors(tc.lock)
			conn, err := bus.Connect()
			must(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			ask := func(method string, arg any) string {
				logind.set(func() { logind.preparing = false })
				err := conn.Object(logindName, logindPath).Call(logindInterface+"."+method, 0, arg).Err
				refusal, _ := errors.AsType[dbus.Error](err)
				return refusal.Name
			}
			got := []string{
				ask("Reboot", false), ask("RebootWithFlags", uint64(0)), ask("RebootWithFlags", flagCheckInhibitors),
				ask("RebootWithFlags", flagSkipInhibitors),
			}
			if diff := cmp.Diff([]string{tc.reboot, tc.none, tc.check, tc.skips}, got); diff != "" {
				t.Errorf("answers to Reboot(false), flags 0, 0x1, 0x10 (-want +got):\n%s", diff)
			}
			want := []string{"Reboot(false)", "RebootWithFlags(0x0)", "RebootWithFlags(0x1)", "RebootWithFlags(0x10)"}
			if diff := cmp.Diff(want, logind.Calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCOSUpdateEngine_PlatformsDifferInHowTheyReportTheirStatus(t *testing.T) {
	const advanced, plain = cosInterface + ".StatusUpdateAdvanced", cosInterface + ".StatusUpdate"
	cases := map[string]struct {
		platform                COSPlatform
		knowsAdvanced, knowsOld bool
		signals                 []string
	}{
		"current":         {COSCurrent, true, false, []string{advanced}},
		"transitional":    {COSTransitional, true, true, []string{advanced, plain}},
		"before advanced": {COSBeforeAdvanced, false, true, []string{plain}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bus := StartFor(t)
			engine, err := StartCOSUpdateEngine(bus, tc.platform)
			must(t, err)
			conn, err := bus.Connect()
			must(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			knows := func(method string) bool {
				err := conn.Object(cosName, cosPath).Call(cosInterface+"."+method, 0).Err
				refusal, _ := errors.AsType[dbus.Error](err)
				return refusal.Name != "org.freedesktop.DBus.Error.UnknownMethod"
			}
			if knows("GetStatusAdvanced") != tc.knowsAdvanced || knows("GetStatus") != tc.knowsOld {
				t.Errorf("knows GetStatusAdvanced: %v, GetStatus: %v", knows("GetStatusAdvanced"), knows("GetStatus"))
			}
			signals := make(chan *dbus.Signal, 16)
			conn.Signal(signals)
			must(t, conn.AddMatchSignal(dbus.WithMatchInterface(cosInterface)))
			must(t, engine.Emit(COSNeedReboot("17800.147.54")))
			var got []string
			for len(got) < len(tc.signals) {
				if signal := <-signals; signal.Path == cosPath {
					got = append(got, signal.Name)
				}
			}
			if diff := cmp.Diff(tc.signals, got); diff != "" {
				t.Errorf("signals (-want +got):\n%s", diff)
			}
		})
	}
}
