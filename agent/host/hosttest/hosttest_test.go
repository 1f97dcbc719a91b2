package hosttest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
)

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

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

// next is the next StatusUpdate. The bus' own NameAcquired is passed over.
func next(signals <-chan *dbus.Signal) *dbus.Signal {
	for signal := range signals {
		if signal.Path == enginePath {
			return signal
		}
	}
	return nil
}

// status asks update_engine.
func status(t *testing.T, conn *dbus.Conn) Status {
	t.Helper()
	var s Status
	call := conn.Object(engineName, enginePath).Call(engineInterface+".GetStatus", 0)
	must(t, call.Store(&s.LastChecked, &s.Progress, &s.Op, &s.Version, &s.Size))
	return s
}

func TestSendNeedReboot_IsTheBroadcastOfLocksmithctl(t *testing.T) {
	bus := StartFor(t)
	_, err := StartUpdateEngine(bus)
	must(t, err)
	conn, signals := listen(t, bus)
	must(t, bus.SendNeedReboot())

	signal := next(signals)
	if signal.Sender == "" || !strings.HasPrefix(signal.Sender, ":") {
		t.Errorf("sender %q is no unique name", signal.Sender)
	}
	var owner string
	must(t, conn.BusObject().Call("org.freedesktop.DBus.GetNameOwner", 0, engineName).Store(&owner))
	if signal.Sender == owner {
		t.Error("the sender is update_engine; locksmithctl is not")
	}
	signal.Sender, signal.Sequence = "", 0
	want := &dbus.Signal{
		Path: "/com/coreos/update1",
		Name: "com.coreos.update1.Manager.StatusUpdate",
		Body: []any{int64(0), float64(0), "UPDATE_STATUS_UPDATED_NEED_REBOOT", "", int64(0)},
	}
	if diff := cmp.Diff(want, signal); diff != "" {
		t.Errorf("signal (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Idle(), status(t, conn)); diff != "" {
		t.Errorf("update_engine knows of the broadcast (-want +got):\n%s", diff)
	}
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
	// Messages of one connection keep their order, so a signal of the reset would have come before this reply.
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
	cases := map[string]struct {
		systemd                    Systemd
		lock                       Inhibitor
		reboot, none, check, skips string
	}{
		"current":                           {SystemdCurrent, own, denied, denied, denied, ""},
		"current, another uid's lock":       {SystemdCurrent, other, denied, denied, denied, ""},
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
				logind.SetPreparingForShutdown(false)
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

func TestLogind_CallsBackOnceForAnAcceptedReboot(t *testing.T) {
	bus := StartFor(t)
	logind, err := StartLogind(bus)
	must(t, err)
	down := make(chan struct{}, 2)
	logind.OnReboot(func() { down <- struct{}{} })
	conn, err := bus.Connect()
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	object := conn.Object(logindName, logindPath)
	must(t, object.Call(logindInterface+".Reboot", 0, false).Err)
	<-down
	if err := object.Call(logindInterface+".Reboot", 0, false).Err; err == nil {
		t.Error("a second reboot was accepted while the host goes down")
	}
	if n := logind.Reboots(); n != 2 || len(down) != 0 {
		t.Errorf("%d reboots asked for, %d more callbacks; want 2 and 0", n, len(down))
	}
}

func TestBus_StartsInAFolderTooDeepForASocket(t *testing.T) {
	deep := filepath.Join(t.TempDir(), strings.Repeat("d", 120))
	must(t, os.Mkdir(deep, 0o700))
	bus, err := Start(deep)
	must(t, err)
	conn, err := bus.Connect()
	must(t, err)
	_ = conn.Close()
	must(t, bus.Stop())
	if _, err := os.Stat(bus.dir); !os.IsNotExist(err) {
		t.Errorf("the temporary folder is left: %v", err)
	}
}

func TestBus_StopEndsTheDaemon(t *testing.T) {
	bus := StartFor(t)
	pid := bus.daemon.Process.Pid
	must(t, bus.Stop())
	must(t, bus.Stop())
	if _, err := bus.Connect(); err == nil {
		t.Error("the bus still answers")
	}
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("process %d is left: %v", pid, err)
	}
}
