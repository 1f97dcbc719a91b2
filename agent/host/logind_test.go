package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

const (
	respect = v1alpha1.ObstacleBlock
	ignore  = v1alpha1.ObstacleIgnore
)

// startLogind starts a bus with a logind, and a client of it.
func startLogind(t *testing.T) (*hosttest.Logind, Logind) {
	t.Helper()
	bus := hosttest.StartFor(t)
	logind, err := hosttest.StartLogind(bus)
	must(t, err)
	return logind, Logind{Connect: SystemBus(bus.Address())}
}

func TestLogind_AnOrdinaryReboot(t *testing.T) {
	cases := map[string]struct {
		systemd    hosttest.Systemd
		inhibitors v1alpha1.Obstacle
		want       []string
	}{
		"current, respecting":       {hosttest.SystemdCurrent, respect, []string{"CanReboot()", "ListInhibitors()", "RebootWithFlags(0x1)"}},
		"current, by default":       {hosttest.SystemdCurrent, "", []string{"CanReboot()", "ListInhibitors()", "RebootWithFlags(0x1)"}},
		"current, ignoring":         {hosttest.SystemdCurrent, ignore, []string{"CanReboot()", "RebootWithFlags(0x10)"}},
		"before 257, respecting":    {hosttest.SystemdBefore257, respect, []string{"CanReboot()", "ListInhibitors()", "RebootWithFlags(0x1)"}},
		"before 257, ignoring":      {hosttest.SystemdBefore257, ignore, []string{"CanReboot()", "RebootWithFlags(0x10)", "Reboot(false)"}},
		"without flags, respecting": {hosttest.SystemdWithoutFlags, respect, []string{"CanReboot()", "ListInhibitors()", "RebootWithFlags(0x1)", "ListInhibitors()", "Reboot(false)"}},
		"without flags, ignoring":   {hosttest.SystemdWithoutFlags, ignore, []string{"CanReboot()", "RebootWithFlags(0x10)", "Reboot(false)"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server, client := startLogind(t)
			server.SetSystemd(tc.systemd)
			rebooted := make(chan struct{}, 2)
			server.OnReboot(func() { rebooted <- struct{}{} })
			must(t, client.Reboot(t.Context(), tc.inhibitors))
			receive(t, "the reboot", rebooted)
			if diff := cmp.Diff(tc.want, server.Calls()); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// Before systemd 257 logind ignores the locks of the caller's own uid, and root holds almost all
// locks.
func TestLogind_BlockInhibitorStopsTheRebootUnlessIgnored_Behaviour46(t *testing.T) {
	generations := map[string]hosttest.Systemd{
		"current": hosttest.SystemdCurrent, "before 257": hosttest.SystemdBefore257, "without flags": hosttest.SystemdWithoutFlags,
	}
	own := hosttest.BlockShutdown("backup", "a snapshot is being taken")
	other := own
	other.UID++
	weak, otherWeak := own, other
	weak.Mode, otherWeak.Mode = "block-weak", "block-weak"
	refused := &RefusedError{"org.freedesktop.login1.BlockedByInhibitorLock", "backup holds a block inhibitor: a snapshot is being taken"}
	cases := map[string]struct {
		lock       hosttest.Inhibitor
		inhibitors v1alpha1.Obstacle
		want       *RefusedError
	}{
		"own uid, respecting":               {own, respect, refused},
		"own uid, by default":               {own, "", refused},
		"own uid, ignoring":                 {own, ignore, nil},
		"another uid, respecting":           {other, respect, refused},
		"another uid, ignoring":             {other, ignore, nil},
		"weak":                              {weak, respect, nil},
		"another uid's weak lock":           {otherWeak, respect, refused},
		"another uid's weak lock, ignoring": {otherWeak, ignore, nil},
	}
	for generation, systemd := range generations {
		for name, tc := range cases {
			t.Run(generation+", "+name, func(t *testing.T) {
				server, client := startLogind(t)
				server.SetSystemd(systemd)
				server.SetInhibitors(tc.lock)
				refusal, _ := errors.AsType[*RefusedError](client.Reboot(t.Context(), tc.inhibitors))
				if diff := cmp.Diff(tc.want, refusal); diff != "" {
					t.Errorf("refusal (-want +got):\n%s", diff)
				}
				if n := server.Reboots(); (n == 0) != (tc.want != nil) {
					t.Errorf("logind was asked for %d reboots", n)
				}
			})
		}
	}
}

// From systemd 257 on, logind asks polkit whether a block inhibitor may be ignored, even for root.
// Without polkit it refuses. The agent knows that before it drains the node.
func TestLogind_RefusesToIgnoreALockWithoutPolkit(t *testing.T) {
	lock := hosttest.BlockShutdown("packagekit", "Transaction in progress")
	weak, delay := lock, lock
	weak.Mode, weak.UID, delay.Mode = "block-weak", lock.UID+1, "delay"
	cases := map[string]struct {
		systemd hosttest.Systemd
		version string
		polkit  bool
		lock    hosttest.Inhibitor
		refused bool
	}{
		"257 without polkit":             {hosttest.SystemdWithoutPolkit, "257.4-1", false, lock, true},
		"a release candidate":            {hosttest.SystemdWithoutPolkit, "v258~rc2", false, lock, true},
		"a version without a suffix":     {hosttest.SystemdWithoutPolkit, "260", false, lock, true},
		"a weak lock":                    {hosttest.SystemdWithoutPolkit, "257.4-1", false, weak, false},
		"a lock that delays":             {hosttest.SystemdWithoutPolkit, "257.4-1", false, delay, false},
		"257 with polkit":                {hosttest.SystemdCurrent, "257.4-1", true, lock, false},
		"256 without polkit":             {hosttest.SystemdBefore257, "256.7-2", false, lock, false},
		"a host without RebootWithFlags": {hosttest.SystemdWithoutFlags, "219", false, lock, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bus := hosttest.StartFor(t)
			server, err := hosttest.StartLogind(bus)
			must(t, err)
			units, err := hosttest.StartUnits(bus)
			must(t, err)
			units.SetVersion(tc.version)
			server.SetSystemd(tc.systemd)
			server.SetInhibitors(tc.lock)
			if tc.polkit {
				must(t, hosttest.StartPolkit(bus))
			}
			client := Logind{Connect: SystemBus(bus.Address())}
			why, err := client.Refuses(t.Context())
			must(t, err)
			if (why != "") != tc.refused || tc.refused && !strings.Contains(why, "packagekit holds a block inhibitor (Transaction in progress)") {
				t.Errorf("beforehand: %q", why)
			}
			if err := client.Reboot(t.Context(), ignore); (err != nil) != tc.refused {
				t.Errorf("the call: %v", err)
			}
		})
	}
}

// A refusal of CanReboot counts even if inhibitors are ignored, and so does a failed call.
func TestLogind_RefusesByCanReboot(t *testing.T) {
	server, client := startLogind(t)
	for answer, want := range map[string]string{"yes": "", "inhibitor-blocked": "", "na": `CanReboot returns "na"`} {
		server.SetCanReboot(answer)
		if why, err := client.Refuses(t.Context()); why != want || err != nil {
			t.Errorf("%s: %q, %v", answer, why, err)
		}
	}
	server.Stop()
	if _, err := client.Refuses(t.Context()); err == nil {
		t.Error("nobody was asked")
	}
}

func TestLogind_GoingDown(t *testing.T) {
	server, client := startLogind(t)
	for _, want := range []bool{false, true} {
		if got, err := client.GoingDown(t.Context()); got != want || err != nil {
			t.Errorf("going down: %v, %v, want %v", got, err, want)
		}
		must(t, client.Reboot(t.Context(), respect))
	}
	server.Stop()
	if _, err := client.GoingDown(t.Context()); err == nil {
		t.Error("nobody was asked")
	}
}

func TestLogind_AnInhibitorThatCannotBeListedIsARefusal_Behaviour46(t *testing.T) {
	const denied = "org.freedesktop.DBus.Error.AccessDenied"
	server, client := startLogind(t)
	server.FailListInhibitors(denied)
	if err := client.Reboot(t.Context(), respect); !isRefusal(err, denied) {
		t.Errorf("error %v", err)
	}
	if n := server.Reboots(); n != 0 {
		t.Errorf("logind was asked for %d reboots all the same", n)
	}
	must(t, client.Reboot(t.Context(), ignore))
}

// Any user may take delay inhibitors with reasons of any length.
func TestLogind_ALargeListOfLocksIsUnknown_Behaviour46(t *testing.T) {
	server, client := startLogind(t)
	server.SetInhibitors(hosttest.Inhibitor{What: "shutdown", Who: "anybody", Why: strings.Repeat("x", 28<<20), Mode: "delay"})
	if _, err := client.BlockInhibitors(t.Context()); !errors.Is(err, ErrTooLarge) {
		t.Errorf("listed: error %v", err)
	}
	if err := client.Reboot(t.Context(), respect); !errors.Is(err, ErrTooLarge) {
		t.Errorf("rebooted: error %v", err)
	}
	if n := server.Reboots(); n != 0 {
		t.Errorf("logind was asked for %d reboots", n)
	}
}

func TestLogind_ListsTheLocksThatForbidAReboot_Behaviour46(t *testing.T) {
	server, client := startLogind(t)
	server.SetInhibitors(
		hosttest.Inhibitor{What: "shutdown", Who: "kubelet", Why: "Kubelet needs time to handle node shutdown", Mode: "delay"},
		hosttest.Inhibitor{What: "sleep", Who: "laptop", Why: "lid", Mode: "block"},
		hosttest.Inhibitor{What: "handle-power-key", Who: "desktop", Why: "it asks", Mode: "block"},
		hosttest.Inhibitor{What: "shutdown", Who: "root", Why: "root overrules this", Mode: "block-weak", UID: uint32(os.Getuid())},
		hosttest.Inhibitor{What: "shutdown", Who: "session", Why: "somebody is logged in", Mode: "block-weak", UID: uint32(os.Getuid()) + 1000},
		hosttest.Inhibitor{What: "sleep:shutdown:idle", Who: "backup", Why: "a snapshot is being taken", Mode: "block", UID: 1000, PID: 7},
		hosttest.BlockShutdown("raid", "rebuilding"),
	)
	got, err := client.BlockInhibitors(t.Context())
	must(t, err)
	want := []Inhibitor{
		{Who: "session", Why: "somebody is logged in"},
		{Who: "backup", Why: "a snapshot is being taken"},
		{Who: "raid", Why: "rebuilding"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("inhibitors (-want +got):\n%s", diff)
	}
	server.SetInhibitors()
	if got, err = client.BlockInhibitors(t.Context()); err != nil || got != nil {
		t.Errorf("without locks: %v, %v", got, err)
	}
}

func TestLogind_RefusesTheListByTheSameNameWithAnotherText(t *testing.T) {
	const denied = "org.freedesktop.DBus.Error.AccessDenied"
	server, client := startLogind(t)
	server.FailListInhibitors(denied)
	_, once := client.BlockInhibitors(t.Context())
	_, again := client.BlockInhibitors(t.Context())
	if !isRefusal(once, denied) || once.Error() == again.Error() {
		t.Errorf("refused with %v, then with %v", once, again)
	}
	if ErrorName(once) != denied || ErrorName(again) != denied {
		t.Errorf("by the names %q and %q", ErrorName(once), ErrorName(again))
	}
}

func TestLogind_SurfacesARefusal_Behaviour45(t *testing.T) {
	for _, name := range []string{
		"org.freedesktop.DBus.Error.AccessDenied", "org.freedesktop.login1.BlockedByInhibitorLock",
		"org.freedesktop.DBus.Error.InteractiveAuthorizationRequired", "org.freedesktop.login1.SomethingNew",
	} {
		t.Run(name, func(t *testing.T) {
			server, client := startLogind(t)
			server.FailReboot(name, "Permission denied")
			err := client.Reboot(t.Context(), respect)
			refusal, ok := errors.AsType[*RefusedError](err)
			if !ok {
				t.Fatalf("error %v is not a refusal", err)
			}
			if diff := cmp.Diff(&RefusedError{name, "Permission denied"}, refusal); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
			want := "calling RebootWithFlags of logind: logind refused: Permission denied (" + name + ")"
			if diff := cmp.Diff(want, err.Error()); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLogind_OnlyAClearYesIsAPermission(t *testing.T) {
	const locked = "org.freedesktop.login1.BlockedByInhibitorLock"
	const unclear = "org.freedesktop.login1.Manager.CanReboot"
	cases := map[string]struct {
		inhibitors v1alpha1.Obstacle
		want       *RefusedError
	}{
		"no":                          {respect, &RefusedError{unclear, `CanReboot returns "no"`}},
		"na":                          {ignore, &RefusedError{unclear, `CanReboot returns "na"`}},
		"challenge":                   {respect, &RefusedError{unclear, `CanReboot returns "challenge"`}},
		"":                            {respect, &RefusedError{unclear, `CanReboot returns ""`}},
		"inhibitor-blocked":           {respect, &RefusedError{locked, "CanReboot returns inhibitor-blocked"}},
		"challenge-inhibitor-blocked": {ignore, &RefusedError{unclear, `CanReboot returns "challenge-inhibitor-blocked"`}},
	}
	for answer, tc := range cases {
		t.Run(answer, func(t *testing.T) {
			server, client := startLogind(t)
			server.SetCanReboot(answer)
			before, err := client.BlockInhibitors(t.Context())
			must(t, err)
			if diff := cmp.Diff([]Inhibitor{{Who: "logind", Why: tc.want.Message}}, before); diff != "" {
				t.Errorf("who blocks, before a drain (-want +got):\n%s", diff)
			}
			refusal, _ := errors.AsType[*RefusedError](client.Reboot(t.Context(), tc.inhibitors))
			if diff := cmp.Diff(tc.want, refusal); diff != "" {
				t.Errorf("refusal (-want +got):\n%s", diff)
			}
			if n := server.Reboots(); n != 0 {
				t.Errorf("asked for %d reboots all the same", n)
			}
		})
	}
	t.Run("inhibitor-blocked while inhibitors are ignored", func(t *testing.T) {
		server, client := startLogind(t)
		server.SetCanReboot("inhibitor-blocked")
		must(t, client.Reboot(t.Context(), ignore))
	})
}

func TestLogind_ARebootInProgressIsNotARefusal(t *testing.T) {
	server, client := startLogind(t)
	must(t, client.Reboot(t.Context(), respect))
	// The agent was restarted before the host went down, and calls again.
	must(t, client.Reboot(t.Context(), respect))
	if n := server.Reboots(); n != 2 {
		t.Errorf("%d calls, want 2", n)
	}
}

func TestLogind_AnotherOperationInProgressIsARefusal(t *testing.T) {
	server, client := startLogind(t)
	server.FailReboot("org.freedesktop.login1.OperationInProgress", "going to sleep")
	err := client.Reboot(t.Context(), respect)
	if !isRefusal(err, "org.freedesktop.login1.OperationInProgress") {
		t.Errorf("error %v", err)
	}
}

func TestLogind_AbsentIsARefusal(t *testing.T) {
	bus := hosttest.StartFor(t)
	client := Logind{Connect: SystemBus(bus.Address())}
	err := client.Reboot(t.Context(), respect)
	if !isRefusal(err, "org.freedesktop.DBus.Error.ServiceUnknown") {
		t.Errorf("error %v: without logind no reboot can have started", err)
	}
	if _, err := client.BlockInhibitors(t.Context()); err == nil {
		t.Error("reported no inhibitors although logind did not respond")
	}
}

func TestLogind_NoReplyIsNotARefusal(t *testing.T) {
	cases := map[string]func(bus *hosttest.Bus, conn *dbus.Conn) error{
		"the bus goes down first": func(bus *hosttest.Bus, _ *dbus.Conn) error { return bus.Halt() },
		"logind goes down first":  func(_ *hosttest.Bus, conn *dbus.Conn) error { return conn.Close() },
	}
	for name, goDown := range cases {
		t.Run(name, func(t *testing.T) {
			bus := hosttest.StartFor(t)
			conn, err := bus.Connect()
			must(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			down := make(chan error, 1)
			must(t, conn.ExportMethodTable(map[string]any{
				"CanReboot":      func() (string, *dbus.Error) { return "yes", nil },
				"ListInhibitors": func() ([]hosttest.Inhibitor, *dbus.Error) { return nil, nil },
				"RebootWithFlags": func(uint64) *dbus.Error {
					down <- goDown(bus, conn)
					return nil
				},
			}, logindPath, logindInterface))
			_, err = conn.RequestName(logindName, dbus.NameFlagDoNotQueue)
			must(t, err)

			err = Logind{Connect: SystemBus(bus.Address())}.Reboot(t.Context(), respect)
			if refusal, ok := errors.AsType[*RefusedError](err); err == nil || ok {
				t.Errorf("error %v, refusal %v: nobody knows whether it was obeyed", err, refusal)
			}
			must(t, receive(t, "the end", down))
		})
	}
}

func TestLogind_WorksAgainAfterARestartOfTheBus(t *testing.T) {
	bus := hosttest.StartFor(t)
	server, err := hosttest.StartLogind(bus)
	must(t, err)
	client := Logind{Connect: SystemBus(bus.Address())}
	_, err = client.BlockInhibitors(t.Context())
	must(t, err)
	must(t, bus.Restart())
	must(t, server.Start())
	must(t, client.Reboot(t.Context(), respect))
}

// answering is a logind object that replies to every call with the same body.
type answering struct {
	dbus.BusObject
	body []any
}

func (a answering) CallWithContext(context.Context, string, dbus.Flags, ...any) *dbus.Call {
	return &dbus.Call{Body: a.body}
}

// FuzzLogind builds replies of any shape. They are read or rejected, and never lead to a reboot.
func FuzzLogind(f *testing.F) {
	f.Add("shutdown:sleep", "backup", "block", []byte{0})
	f.Add("yes", "challenge", "block", []byte{1})
	f.Add("\xff", "\x00", "block", []byte{2})
	f.Add("shutdown", "", "delay", []byte{3, 4, 5})
	f.Fuzz(func(t *testing.T, operation, who, mode string, shape []byte) {
		lock := []any{operation, who, "why", mode, uint32(0), uint32(1)}
		// The Go types that godbus decodes. D-Bus does not have nil or arrays with elements of
		// different types.
		values := []any{
			[][]any{lock},
			operation,
			[][]any{lock[:4]},
			[][]any{{uint32(1), who, "why", mode, operation, operation}},
			[]string{operation},
			dbus.MakeVariant(true), dbus.MakeVariant(operation), true, lock,
			[]any{},
			[][]any{lock, lock},
			[][]any{},
			[][]any{{}},
			map[string]dbus.Variant{operation: dbus.MakeVariant(who)},
			[]dbus.Variant{dbus.MakeVariant(lock)},
			[][]string{{operation}},
			[]byte(operation), dbus.ObjectPath(operation), uint64(1),
			[]map[string]dbus.Variant{{}},
		}
		body := make([]any, 0, len(shape))
		for _, b := range shape {
			body = append(body, values[int(b)%len(values)])
		}
		m := manager{answering{body: body}}
		locks, err := m.blockInhibitors(t.Context())
		for _, lock := range locks {
			if err != nil || mode != "block" && mode != "block-weak" {
				t.Errorf("%#v blocks as %+v, %v", body, lock, err)
			}
		}
		if refusal, err := m.canReboot(t.Context(), respect); err == nil && refusal == nil && (len(body) != 1 || body[0] != "yes") {
			t.Errorf("%#v permits a reboot", body)
		}
		if err := m.alreadyGoingDown(t.Context(), &RefusedError{}); err == nil && len(body) != 1 {
			t.Errorf("%#v goes down", body)
		}
	})
}

// FuzzRefused shows that every error of logind can be reported.
func FuzzRefused(f *testing.F) {
	f.Add("org.freedesktop.DBus.Error.AccessDenied", "Permission denied", true)
	f.Add("org.freedesktop.DBus.Error.NoReply", "", false)
	f.Add("", "\xff", true)
	f.Fuzz(func(t *testing.T, name, text string, withText bool) {
		answer := dbus.Error{Name: name}
		if withText {
			answer.Body = []any{text}
		}
		if err := refused(answer); err == nil {
			t.Errorf("%#v is not an error", answer)
		} else if message := err.Error(); utf8.ValidString(name) && utf8.ValidString(text) && !utf8.ValidString(message) {
			t.Errorf("%#v is reported as %q", answer, message)
		}
	})
}

// TestLogind_Logins tests that people who are logged in on a terminal or from another host count.
func TestLogind_Logins(t *testing.T) {
	server, client := startLogind(t)
	if none, err := client.Logins(t.Context()); err != nil || len(none) > 0 {
		t.Errorf("none: %v, %v", none, err)
	}
	server.SetSessions(
		hosttest.Session{ID: "1", User: "core", Class: "user", State: "active", TTY: "pts/0", RemoteHost: "10.0.0.1"},
		hosttest.Session{ID: "2", User: "root", Class: "user", State: "online", TTY: "tty1"},
		hosttest.Session{ID: "3", User: "backup", Class: "user", State: "active", RemoteHost: "10.0.0.2"},
		hosttest.Session{ID: "4", User: "cron", Class: "user", State: "active"},
		hosttest.Session{ID: "5", User: "left", Class: "user", State: "closing", TTY: "pts/1"},
		hosttest.Session{ID: "6", User: "gdm", Class: "greeter", State: "active", TTY: "tty2"},
		hosttest.Session{ID: "7", User: "core", Class: "manager", State: "active", TTY: "tty3"},
		hosttest.Session{ID: "8", User: "gone"}, // it ends after it was listed and before it is read
	)
	want := []Login{{"core", "pts/0", "10.0.0.1"}, {"root", "tty1", ""}, {"backup", "", "10.0.0.2"}}
	got, err := client.Logins(t.Context())
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	server.Stop()
	if unknown, err := client.Logins(t.Context()); err == nil {
		t.Errorf("without logind: %v", unknown)
	}
}

// Any user of the host may open sessions that hide a person behind the last one that is looked at.
func TestLogind_LoginsAreUnknownBehindTooManySessions(t *testing.T) {
	server, client := startLogind(t)
	sessions := make([]hosttest.Session, maxSessions, maxSessions+1)
	for i := range sessions {
		sessions[i] = hosttest.Session{ID: fmt.Sprintf("c%d", i), User: "cron", Class: "background", State: "active"}
	}
	server.SetSessions(sessions...)
	if none, err := client.Logins(t.Context()); err != nil || len(none) > 0 {
		t.Errorf("%v, %v", none, err)
	}
	server.SetSessions(append(sessions, hosttest.Session{ID: "1", User: "core", Class: "user", State: "active", TTY: "pts/0"})...)
	if unknown, err := client.Logins(t.Context()); err == nil {
		t.Errorf("%v", unknown)
	}
}
