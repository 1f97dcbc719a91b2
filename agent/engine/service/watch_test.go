package service

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

// recorder records what it receives. A body that begins with an error is malformed.
type recorder []string

func (r *recorder) Receive(member string, body []any, fromOwner bool) error {
	if err, malformed := body[0].(error); malformed {
		return err
	}
	from := " from another sender"
	if fromOwner {
		from = " from the owner"
	}
	*r = append(*r, member+from)
	return nil
}

func (r *recorder) Read(context.Context, Call) error {
	*r = append(*r, "asked")
	return nil
}

func (r *recorder) Lost(why string, presence engine.Presence) {
	*r = append(*r, fmt.Sprint(presence, " ", why))
}

// leaves is a service that leaves the bus before it is queried.
type leaves struct {
	*recorder

	conn *dbus.Conn
	name string
}

func (l leaves) Read(ctx context.Context, _ Call) error {
	if _, err := l.conn.ReleaseName(l.name); err != nil {
		return err
	}
	return &unansweredError{cause: l.conn.Object(l.name, "/").CallWithContext(ctx, l.name+".GetStatus", dbus.FlagNoAutoStart).Err}
}

// fails is a service whose call ends with an error.
type fails struct {
	*recorder

	cause error
}

func (f fails) Read(context.Context, Call) error {
	return &unansweredError{why: "is silent.", cause: f.cause}
}

func TestSession_Receive(t *testing.T) {
	const owner, other = ":1.1", ":1.9"
	status := dbus.Signal{
		Sender: owner, Path: "/engine", Name: "org.example.Engine.Status", Body: []any{"idle"}, Sequence: 13,
	}
	but := func(change func(*dbus.Signal)) *dbus.Signal {
		signal := status
		change(&signal)
		return &signal
	}
	changed := func(signal *dbus.Signal) {
		signal.Sender, signal.Name, signal.Path = busDaemon, ownerChanged, "/org/freedesktop/DBus"
	}
	cases := map[string]struct {
		signal    *dbus.Signal
		ownerOnly bool
		received  []string
		asks      bool
		malformed int
	}{
		"the owner's signal": {signal: &status, received: []string{"Status from the owner"}},
		"another sender's signal": {
			signal: but(func(s *dbus.Signal) { s.Sender = other }), received: []string{"Status from another sender"},
		},
		"another sender's signal if only the owner's counts": {
			signal: but(func(s *dbus.Signal) { s.Sender = other }), ownerOnly: true,
		},
		"the owner's signal from before the query": {signal: but(func(s *dbus.Signal) { s.Sequence = 9 })},
		"the owner's signal between the query and its reply": {
			signal: but(func(s *dbus.Signal) { s.Sequence = 11 }), asks: true,
		},
		"a malformed body (behaviour 5)": {
			signal: but(func(s *dbus.Signal) { s.Body = []any{errors.New("no status")} }), malformed: 1,
		},
		"another object":    {signal: but(func(s *dbus.Signal) { s.Path = "/other" })},
		"another signal":    {signal: but(func(s *dbus.Signal) { s.Name = "org.example.Engine.Other" })},
		"another interface": {signal: but(func(s *dbus.Signal) { s.Name = "org.example.Other.Status" })},
		"a new owner":       {signal: but(changed), asks: true},
		"a new owner from before the look-up": {
			signal: but(func(s *dbus.Signal) { changed(s); s.Sequence = 10 }),
		},
		"a new owner, forged": {signal: but(func(s *dbus.Signal) { changed(s); s.Sender = other })},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var received recorder
			malformed := 0
			s := session{Link: Link{Owner: owner, Found: 10}, read: 12, watch: Watch{
				Path: "/engine", Interface: "org.example.Engine", Signals: []string{"Status"}, OwnerOnly: tc.ownerOnly,
				Bus: Bus{Malformed: func() { malformed++ }},
			}, listener: &received}
			if asks := s.receive(t.Context(), tc.signal); asks != tc.asks {
				t.Errorf("asks again: %v, want %v", asks, tc.asks)
			}
			if diff := cmp.Diff(tc.received, []string(received)); diff != "" {
				t.Errorf("received (-want +got):\n%s", diff)
			}
			if malformed != tc.malformed {
				t.Errorf("%d malformed, want %d", malformed, tc.malformed)
			}
		})
	}
}

// TestSession_Ask covers the presence of a service (behaviour 7).
func TestSession_Ask(t *testing.T) {
	const name = "org.example.Engine"
	bus := hosttest.StartFor(t)
	conn, err := bus.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var received recorder
	s := session{Link: Link{Conn: conn, Name: name, Limit: callLimit}, watch: Watch{Name: name, Title: "The engine"}, listener: &received}
	ask := func() {
		t.Helper()
		if _, err := s.ask(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	if err := bus.MakeActivatable(name); err != nil {
		t.Fatal(err)
	}
	ask()
	if _, err := conn.RequestName(name, dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	ask()
	want := recorder{
		fmt.Sprint(engine.Missing, " The engine is not on the system bus."), fmt.Sprint(engine.Silent, " The engine is not running."),
		"asked",
	}
	if diff := cmp.Diff(want, received); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	s.listener = leaves{&received, conn, name}
	ask()
	if diff := cmp.Diff(want, received); diff != "" {
		t.Errorf("it left between the look-up and the question, which NameOwnerChanged reports (-want +got):\n%s", diff)
	}
	if _, err := conn.RequestName(name, dbus.NameFlagDoNotQueue); err != nil {
		t.Fatal(err)
	}
	s.listener = fails{&received, syscall.EPIPE}
	if _, err := s.ask(t.Context()); err == nil {
		t.Error("a connection is of use that breaks as it is written to, before it reads that it has ended")
	}
	if diff := cmp.Diff(want, received); diff != "" {
		t.Errorf("a broken connection does not mean that the service is silent (-want +got):\n%s", diff)
	}
	s.listener = fails{&received, context.DeadlineExceeded}
	ask()
	want = append(want, fmt.Sprint(engine.Silent, " The engine is silent."))
	if diff := cmp.Diff(want, received); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	_ = conn.Close()
	if _, err := s.ask(t.Context()); err == nil {
		t.Error("a broken connection is of use")
	}
}

// TestLink_Startable shows that a service does not count as missing if the bus answers too late.
func TestLink_Startable(t *testing.T) {
	conn, err := hosttest.StartFor(t).Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	l := Link{Conn: conn, Name: "org.example.Engine", Limit: 1}
	if _, err := l.Startable(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
	}
}

func TestSession_CallWithoutAReplyInTime(t *testing.T) {
	conn, err := hosttest.StartFor(t).Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	s := session{Link: Link{Conn: conn, Owner: ":1.1"}, watch: Watch{Path: "/engine", Interface: "org.example.Engine"}}
	failed, ok := errors.AsType[*unansweredError](s.call(ctx, "GetStatus", nil))
	if !ok || failed.why != "does not answer GetStatus: no reply in time." {
		t.Errorf("error %v", failed)
	}
}

// listening accepts any body and counts the signals by sender.
type listening struct {
	recorder
	owners, others int
}

func (l *listening) Receive(_ string, _ []any, fromOwner bool) error {
	if fromOwner {
		l.owners++
	} else {
		l.others++
	}
	return nil
}

// FuzzReceive shows that no other sender is mistaken for the service or the bus.
func FuzzReceive(f *testing.F) {
	f.Add(":1.1", "/engine", "org.example.Engine.Status", uint64(11), false)
	f.Add(":1.9", "/engine", "org.example.Engine.Status", uint64(11), true)
	f.Add("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus.NameOwnerChanged", uint64(11), false)
	f.Add("", "", "org.example.Engine.", uint64(0), false)
	f.Fuzz(func(t *testing.T, sender, path, name string, sequence uint64, ownerOnly bool) {
		var received listening
		s := session{Link: Link{Owner: ":1.1", Found: 10}, read: 10, watch: Watch{
			Path: "/engine", Interface: "org.example.Engine", Signals: []string{"Status"}, OwnerOnly: ownerOnly,
		}, listener: &received}
		asks := s.receive(t.Context(), &dbus.Signal{
			Sender: sender, Path: dbus.ObjectPath(path), Name: name, Sequence: dbus.Sequence(sequence),
		})
		if asks && (sender != busDaemon || sequence <= 10) {
			t.Errorf("asks again because of %q at %d", sender, sequence)
		}
		if received.owners > 0 && (sender != ":1.1" || sequence < 10) || received.others > 0 && (ownerOnly || sender == ":1.1") {
			t.Errorf("received %+v from %q at %d", received, sender, sequence)
		}
		if received.owners+received.others > 0 && (path != "/engine" || !strings.HasSuffix(name, ".Status")) {
			t.Errorf("received %s of %s", name, path)
		}
	})
}
