package host_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/reboot-operator/reboot-operator/agent/host"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

// watching starts Changes on a bus with a logind, and returns once it has subscribed and reported
// the connection.
func watching(t *testing.T) (bus *hosttest.Bus, logind *hosttest.Logind, changes chan struct{}) {
	t.Helper()
	bus = hosttest.StartFor(t)
	logind, err := hosttest.StartLogind(bus)
	if err != nil {
		t.Fatal(err)
	}
	changes = make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- host.Changes{
			Connect: host.SystemBus(bus.Address()), Clock: clock.RealClock{}, Changed: func() { changes <- struct{}{} },
		}.Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	wait(t, changes) // the connection
	return bus, logind, changes
}

// expectOne makes one change and checks that no other change is reported before it. It does not
// wait for later ones.
func expectOne(t *testing.T, logind *hosttest.Logind, changes chan struct{}) {
	t.Helper()
	logind.SetInhibitors(hosttest.BlockShutdown("the", "last"))
	wait(t, changes)
	select {
	case <-changes:
		t.Error("more than one change was detected, and there was one")
	case <-time.After(200 * time.Millisecond):
	}
}

func TestChanges_AreReceivedWhenALockIsTakenAndReleased(t *testing.T) {
	_, logind, changes := watching(t)
	logind.SetInhibitors(hosttest.BlockShutdown("apt", "upgrade"))
	wait(t, changes)
	logind.SetInhibitors()
	wait(t, changes)
}

func TestChanges_OutlastTheBus(t *testing.T) {
	bus, logind, changes := watching(t)
	if err := bus.Restart(); err != nil {
		t.Fatal(err)
	}
	wait(t, changes) // the connection
	if err := logind.Start(); err != nil {
		t.Fatal(err)
	}
	logind.SetInhibitors()
	wait(t, changes)
}

func TestChanges_OfOtherSendersAndPropertiesAreIgnored(t *testing.T) {
	bus, logind, changes := watching(t)
	sender, err := bus.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	const path, signal, manager = "/org/freedesktop/login1", "org.freedesktop.DBus.Properties.PropertiesChanged", "org.freedesktop.login1.Manager"
	changed := map[string]dbus.Variant{"BlockInhibited": dbus.MakeVariant("shutdown")}
	for _, body := range [][]any{{manager, changed, []string{}}, {manager}, {}} {
		if err := sender.Emit(path, signal, body...); err != nil {
			t.Fatal(err)
		}
	}
	if err := sender.BusObject().Call("org.freedesktop.DBus.GetId", 0).Err; err != nil { // its reply arrives after the signals
		t.Fatal(err)
	}
	for _, body := range [][]any{
		{manager, map[string]dbus.Variant{"IdleHint": dbus.MakeVariant(true)}, []string{"IdleSinceHint"}},
		{"org.freedesktop.login1.Other", changed, []string{}},
		{manager, "nonsense"},
	} {
		if err := logind.EmitChanged(body...); err != nil {
			t.Fatal(err)
		}
	}
	expectOne(t, logind, changes)
}

func wait(t *testing.T, changes chan struct{}) {
	t.Helper()
	select {
	case <-changes:
	case <-time.After(time.Minute):
		t.Fatal("the change was not received")
	}
}

func TestChanges_UnitsAndScheduledShutdownsAreDetected_Behaviour57(t *testing.T) {
	bus, logind, changes := watching(t)
	units, err := hosttest.StartUnits(bus)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(){
		"a shutdown is scheduled":    func() { logind.Schedule(hosttest.Scheduled{Type: "reboot", USec: 1}) },
		"it is cancelled":            func() { logind.Schedule(nil) },
		"a unit starts":              func() { units.Set("zincati.service", "active") },
		"a unit is masked":           func() { _ = units.ChangeFiles() },
		"a timer stops":              func() { units.Set("dnf5-automatic.timer", "inactive") },
		"a unit of the first in row": func() { units.Set("locksmithd.service", "inactive") },
	} {
		change()
		select {
		case <-changes:
		case <-time.After(time.Minute):
			t.Fatalf("%s: no change was detected", name)
		}
	}
	units.Set("sshd.service", "active")
	expectOne(t, logind, changes)
}

// A changed configuration file does not send a signal.
func TestChanges_EveryFiveMinutes_Behaviour57(t *testing.T) {
	bus := hosttest.StartFor(t)
	fake := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	changes := make(chan struct{}, 100)
	go func() {
		_ = host.Changes{Connect: host.SystemBus(bus.Address()), Clock: fake, Changed: func() { changes <- struct{}{} }}.Start(t.Context())
	}()
	wait(t, changes) // the connection
	for range 3 {
		for !fake.HasWaiters() {
			runtime.Gosched()
		}
		fake.Step(5*time.Minute - 1)
		if len(changes) > 0 {
			t.Fatal("looked before five minutes were over")
		}
		fake.Step(1)
		wait(t, changes)
	}
}
