package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// receive waits for a value.
func receive[T any](t *testing.T, description string, values <-chan T) T {
	t.Helper()
	select {
	case v := <-values:
		return v
	case <-time.After(time.Minute):
		t.Fatalf("waited in vain for %s", description)
		panic("unreachable")
	}
}

// silentBus accepts connections but never sends anything.
func silentBus(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	return "unix:path=" + path
}

func TestSystemBus_KeepsTheOrderOfSignals(t *testing.T) {
	bus := hosttest.StartFor(t)
	conn, err := SystemBus(bus.Address())(t.Context())
	must(t, err)
	const n = 500
	signals := make(chan *dbus.Signal, 2*n) // Nobody receives while they arrive.
	conn.Signal(signals)
	must(t, conn.AddMatchSignal(dbus.WithMatchInterface("org.example.Test")))
	sender, err := bus.Connect()
	must(t, err)
	t.Cleanup(func() { _ = sender.Close() })
	for i := range n {
		must(t, sender.Emit("/", "org.example.Test.Count", int32(i)))
	}
	for want := int32(0); want < n; {
		signal := receive(t, "a signal", signals)
		if signal.Name != "org.example.Test.Count" {
			continue
		}
		if got := signal.Body[0].(int32); got != want {
			t.Fatalf("signal %d came in place of %d", got, want)
		}
		want++
	}
}

func TestSystemBus_ConnectionEndsWithItsContext(t *testing.T) {
	bus := hosttest.StartFor(t)
	ctx, cancel := context.WithCancel(t.Context())
	conn, err := SystemBus(bus.Address())(ctx)
	must(t, err)
	cancel()
	receive(t, "the end of the connection", conn.Context().Done())
}

func TestSystemBus_NamesTheAddressItCannotReach(t *testing.T) {
	_, err := SystemBus("unix:path=/does/not/exist")(t.Context())
	if err == nil || !strings.HasPrefix(err.Error(), `connecting to the bus at "unix:path=/does/not/exist": `) {
		t.Errorf("error %v", err)
	}
}

func TestSystemBus_GivesUpOnABusThatDoesNotAnswer(t *testing.T) {
	_, err := connect(t.Context(), silentBus(t), 10*time.Millisecond)
	if err == nil || err.Error() != "no answer within 10ms" {
		t.Errorf("error %v", err)
	}
}

func TestSystemBus_StopsConnectingWhenTheContextEnds_Behaviour58(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	connect := SystemBus(silentBus(t))
	go func() {
		_, err := connect(ctx)
		done <- err
	}()
	cancel()
	if err := receive(t, "the end", done); err == nil {
		t.Error("connected to a bus that does not answer")
	}
}

// flaky returns a clock that only the test moves, and the connection attempts of a supervisor whose
// connections fail.
func flaky(t *testing.T) (*clocktesting.FakeClock, <-chan time.Time) {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	tries := make(chan time.Time)
	supervisor := Supervisor{
		Connect: func(ctx context.Context) (*dbus.Conn, error) {
			select {
			case tries <- clock.Now():
			case <-ctx.Done():
			}
			return nil, errors.New("no bus")
		},
		Clock: clock, Broken: func(error) {},
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		supervisor.Run(ctx, func(context.Context, *dbus.Conn) error { return nil })
	}()
	t.Cleanup(func() {
		cancel()
		receive(t, "the supervisor's end", done)
	})
	return clock, tries
}

// nextTry advances the time in small steps until the supervisor tries again, and returns how long
// that took.
func nextTry(t *testing.T, clock *clocktesting.FakeClock, tries <-chan time.Time) time.Duration {
	t.Helper()
	began := clock.Now()
	deadline := time.After(time.Minute)
	for {
		select {
		case tried := <-tries:
			return tried.Sub(began)
		case <-deadline:
			t.Fatal("no further try")
		default:
			runtime.Gosched()
		}
		if clock.HasWaiters() {
			clock.Step(50 * time.Millisecond)
		}
	}
}

func TestSupervisor_PausesDoubleUpToThirtySeconds(t *testing.T) {
	clock, tries := flaky(t)
	receive(t, "the first try", tries)
	want := 500 * time.Millisecond
	for i := range 9 {
		got := nextTry(t, clock, tries)
		// The pause is jittered by half and measured in steps of 50 ms. The clock may run on a
		// little.
		if got < want/2 || got > want*3/2+time.Second {
			t.Errorf("pause %d is %s, want %s give or take half", i, got, want)
		}
		want = min(2*want, 30*time.Second)
	}
}

func TestSupervisor_StartsOverAfterASessionThatLasted(t *testing.T) {
	bus := hosttest.StartFor(t)
	clock := clocktesting.NewFakeClock(time.Unix(1_800_000_000, 0))
	sessions := make(chan *dbus.Conn)
	broken := make(chan error, 1)
	supervisor := Supervisor{
		Connect: SystemBus(bus.Address()), Clock: clock,
		Broken: func(err error) { broken <- err },
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	end := make(chan error)
	go func() {
		defer close(done)
		supervisor.Run(ctx, func(_ context.Context, conn *dbus.Conn) error {
			sessions <- conn
			return <-end
		})
	}()
	conn := receive(t, "the first session", sessions)
	for range 4 {
		clock.Step(time.Minute)
		end <- errors.New("it broke")
		if err := receive(t, "the news", broken); err.Error() != "it broke" {
			t.Errorf("reported %v", err)
		}
		receive(t, "the end of the connection", conn.Context().Done())
		for !clock.HasWaiters() {
			runtime.Gosched()
		}
		clock.Step(firstPause * 3 / 2)
		conn = receive(t, "the next session", sessions)
	}
	cancel()
	end <- nil
	receive(t, "the supervisor's end", done)
	if len(broken) > 0 {
		t.Errorf("the stop was notified as a break: %v", <-broken)
	}
}

func TestErrorName(t *testing.T) {
	const failed = "org.freedesktop.DBus.Error.Failed"
	cases := map[string]struct {
		err  error
		want string
	}{
		"no answer":        {errors.New("timeout"), ""},
		"no error":         {nil, ""},
		"a name":           {fmt.Errorf("asking: %w", dbus.Error{Name: "org.example.No_1", Body: []any{"pid 7"}}), "org.example.No_1"},
		"logind refuses":   {fmt.Errorf("calling: %w", &RefusedError{Name: "org.example.No_1", Message: "pid 7"}), "org.example.No_1"},
		"no name":          {dbus.Error{}, failed},
		"a sentence":       {dbus.Error{Name: "org.example. Reported in boot 1"}, failed},
		"not even UTF-8":   {dbus.Error{Name: "org.example.\xff"}, failed},
		"an endless name":  {dbus.Error{Name: "org." + strings.Repeat("x", 252)}, failed},
		"the longest name": {dbus.Error{Name: "org." + strings.Repeat("x", 251)}, "org." + strings.Repeat("x", 251)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := ErrorName(tc.err); got != tc.want {
				t.Errorf("name %q, want %q", got, tc.want)
			}
		})
	}
}

func TestIsBroken(t *testing.T) {
	cases := map[string]struct {
		err  error
		want bool
	}{
		"no error":                           {nil, false},
		"an answer":                          {fmt.Errorf("asking: %w", dbus.Error{Name: "org.example.No"}), false},
		"logind refuses":                     {&RefusedError{Name: "org.example.No"}, false},
		"no answer in time":                  {fmt.Errorf("asking: %w", context.DeadlineExceeded), false},
		"it cannot be sent":                  {fmt.Errorf("asking: %w", syscall.EPIPE), true},
		"the connection ended during it":     {fmt.Errorf("asking: %w", io.EOF), true},
		"the connection had ended before it": {dbus.ErrClosed, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := IsBroken(tc.err); got != tc.want {
				t.Errorf("broken %v, want %v", got, tc.want)
			}
		})
	}
}

// FuzzErrorName shows that every reported name is a valid D-Bus name.
func FuzzErrorName(f *testing.F) {
	for _, name := range []string{"org.freedesktop.DBus.Error.AccessDenied", "", "a b", "\xff", strings.Repeat("a", 256)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		got := ErrorName(dbus.Error{Name: name})
		if got == "" || len(got) > 255 || strings.ContainsFunc(got, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Errorf("%q is reported as %q", name, got)
		}
		if again := ErrorName(dbus.Error{Name: got}); again != got {
			t.Errorf("%q is reported as %q", got, again)
		}
	})
}
