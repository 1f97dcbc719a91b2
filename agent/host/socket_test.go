package host

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

func TestSocketOf(t *testing.T) {
	cases := map[string]struct{ address, root, want string }{
		"the current socket":                       {"unix:path=/run/rpm-ostree-transaction.sock", "", "/run/rpm-ostree-transaction.sock"},
		"below the host's root":                    {"unix:path=/run/rpm-ostree-transaction.sock", "/host", "/host/run/rpm-ostree-transaction.sock"},
		"the root itself":                          {"unix:path=/run/a", "/", "/run/a"},
		"with the server's name":                   {"unix:path=/run/a,guid=0123456789abcdef0123456789abcdef", "/host", "/host/run/a"},
		"the server's name first":                  {"unix:guid=0123456789abcdef0123456789abcdef,path=/run/a", "/host", "/host/run/a"},
		"escaped":                                  {"unix:path=/run/a%20b", "/host", "/host/run/a b"},
		"an abstract socket, as in older versions": {"unix:abstract=/tmp/dbus-a,guid=0", "/host", "@/tmp/dbus-a"},
		"a path that leaves the host's root":       {"unix:path=/../../etc/a", "/host", "/host/etc/a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := SocketOf(tc.address, tc.root)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("socket (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSocketOf_RefusesOtherAddresses(t *testing.T) {
	cases := map[string]struct{ address, want string }{
		"nothing":               {"", `address "" is not a socket of this host`},
		"another host":          {"tcp:host=198.51.100.1,port=1", `address "tcp:host=198.51.100.1,port=1" is not a socket of this host`},
		"a program":             {"unixexec:path=/bin/sh", `address "unixexec:path=/bin/sh" is not a socket of this host`},
		"a choice":              {"unix:path=/a;tcp:host=b", `address "unix:path=/a;tcp:host=b" is not a socket of this host`},
		"no path":               {"unix:", `address "unix:" names no socket`},
		"an empty path":         {"unix:path=", `address "unix:path=" names no socket`},
		"a relative path":       {"unix:path=a", `address "unix:path=a" names no socket`},
		"a folder to listen in": {"unix:tmpdir=/tmp", `address "unix:tmpdir=/tmp" names no socket`},
		"a bad escape":          {"unix:path=/a%zz", `address "unix:path=/a%zz" cannot be read`},
		"a NUL byte":            {"unix:path=/a%00b", `address "unix:path=/a%00b" cannot be read`},
		"without end":           {strings.Repeat("x", 1<<20), `address "` + strings.Repeat("x", 128) + `" is not a socket of this host`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := SocketOf(tc.address, "/host")
			if err == nil {
				t.Fatalf("found %q", got)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzSocketOf checks that a socket is below the root or abstract.
func FuzzSocketOf(f *testing.F) {
	f.Add("unix:path=/run/rpm-ostree-transaction.sock")
	f.Add("unix:abstract=a,guid=b")
	f.Add("unix:path=/../..")
	f.Add("unix:path=%2f%2e%2e")
	f.Add("tcp:host=a;unix:path=/b")
	f.Fuzz(func(t *testing.T, address string) {
		socket, err := SocketOf(address, "/host")
		if err != nil {
			return
		}
		if !strings.HasPrefix(address, "unix:") || strings.ContainsRune(socket, 0) {
			t.Errorf("%q is %q", address, socket)
		}
		if !strings.HasPrefix(socket, "@") && socket != "/host" && !strings.HasPrefix(socket, "/host/") {
			t.Errorf("%q leaves the root: %q", address, socket)
		}
	})
}

// signal returns an encoded signal.
func signal(t *testing.T, path string, body ...any) []byte {
	t.Helper()
	m := dbus.Message{Type: dbus.TypeSignal, Body: body, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath(path)), dbus.FieldInterface: dbus.MakeVariant("org.example.Test"), dbus.FieldMember: dbus.MakeVariant("Signal"),
	}}
	if len(body) > 0 {
		m.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
	}
	return encoded(t, m)
}

func encoded(t *testing.T, m dbus.Message) []byte {
	t.Helper()
	var sent bytes.Buffer
	must(t, m.EncodeTo(&sent, binary.LittleEndian))
	binary.LittleEndian.PutUint32(sent.Bytes()[8:], 1) // a serial number
	return sent.Bytes()
}

// stranger is a program on the bus that sends messages which godbus would not send.
func stranger(t *testing.T, bus *hosttest.Bus) io.Writer {
	t.Helper()
	path, err := SocketOf(bus.Address(), "/")
	must(t, err)
	socket, err := new(net.Dialer).DialContext(t.Context(), "unix", path)
	must(t, err)
	t.Cleanup(func() { _ = socket.Close() })
	_, err = fmt.Fprintf(socket, "\x00AUTH EXTERNAL %x\r\nBEGIN\r\n", strconv.Itoa(os.Getuid()))
	must(t, err)
	_, err = socket.Write(encoded(t, dbus.Message{Type: dbus.TypeMethodCall, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldDestination: dbus.MakeVariant("org.freedesktop.DBus"), dbus.FieldPath: dbus.MakeVariant(dbus.ObjectPath("/org/freedesktop/DBus")),
		dbus.FieldInterface: dbus.MakeVariant("org.freedesktop.DBus"), dbus.FieldMember: dbus.MakeVariant("Hello"),
	}}))
	must(t, err)
	return socket
}

func TestSystemBus_SurvivesAnyMessageOfAnyUser_Behaviour5(t *testing.T) {
	cases := map[string][]byte{
		"a body of 30 MiB": signal(t, "/", strings.Repeat("x", 30<<20)),
		"a path of 1 MiB":  signal(t, "/"+strings.Repeat("x", 1<<20)),
		// D-Bus allows these keys, but godbus does not support them.
		"a key that is a boolean": bytes.Replace(signal(t, "/", map[uint32]string{1: "x"}), []byte("a{us}"), []byte("a{bs}"), 1),
		"an endless list":         signal(t, "/", make([]string, 1<<20)),
	}
	for name, hostile := range cases {
		t.Run(name, func(t *testing.T) {
			bus := hosttest.StartFor(t)
			conn, err := SystemBus(bus.Address())(t.Context())
			must(t, err)
			signals := make(chan *dbus.Signal, MaxQueued)
			must(t, conn.AddMatchSignal(dbus.WithMatchInterface("org.example.Test")))
			conn.Signal(signals) // After NameAcquired.
			from := stranger(t, bus)
			_, err = from.Write(hostile)
			must(t, err)
			_, err = from.Write(signal(t, "/after"))
			must(t, err)
			if got := receive(t, "a signal", signals); got == nil || got.Path != "/after" {
				t.Errorf("received %.64v", got)
			}
		})
	}
}

// godbus panics for a list of file descriptors. A bus passes file descriptors only to clients that
// asked for them.
func TestSystemBus_ReceivesNoFiles_Behaviour5(t *testing.T) {
	bus := hosttest.StartFor(t)
	conn, err := SystemBus(bus.Address())(t.Context())
	must(t, err)
	signals := make(chan *dbus.Signal, MaxQueued)
	must(t, conn.AddMatchSignal(dbus.WithMatchInterface("org.example.Test")))
	conn.Signal(signals)
	sender, err := bus.Connect()
	must(t, err)
	t.Cleanup(func() { _ = sender.Close() })
	must(t, sender.Emit("/", "org.example.Test.Files", []dbus.UnixFD{dbus.UnixFD(os.Stdin.Fd())}))
	must(t, sender.Emit("/after", "org.example.Test.Signal"))
	if got := receive(t, "a signal", signals); got == nil || got.Path != "/after" {
		t.Errorf("received %v", got)
	}
}

func TestSystemBus_ReportsThatSignalsAreMissing(t *testing.T) {
	cases := map[string]struct {
		room, size, want int
	}{
		"too many":  {3, 1, 2},
		"too large": {MaxQueued, 60 << 10, 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			bus := hosttest.StartFor(t)
			conn, err := SystemBus(bus.Address())(t.Context())
			must(t, err)
			signals := make(chan *dbus.Signal, tc.room) // Nobody receives while they arrive.
			must(t, conn.AddMatchSignal(dbus.WithMatchInterface("org.example.Test")))
			conn.Signal(signals) // After NameAcquired.
			for range 2 {        // Later signals are received again.
				for i := range 10 {
					must(t, conn.Emit("/", "org.example.Test.Count", int32(i), strings.Repeat("x", tc.size)))
				}
				must(t, conn.BusObject().Call("org.freedesktop.DBus.GetId", 0).Err) // The reply arrives after the signals.
				for want := range int32(tc.want) {
					if got := receive(t, "a signal", signals); got == nil || got.Body[0] != want {
						t.Errorf("received %v in place of %d", got, want)
					}
				}
				if got := receive(t, "a signal", signals); got != nil || len(signals) > 0 {
					t.Errorf("received %v and %d more, want nil at the end", got, len(signals))
				}
			}
		})
	}
}

// zeros is an endless message body.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestBoundedReader_KeepsNothingLargeInMemory(t *testing.T) {
	const large = 100 << 20
	head := func(kind dbus.Type, body uint32) io.Reader {
		b := []byte{'l', byte(kind), 0, 1, 15: 0}
		binary.LittleEndian.PutUint32(b[4:], body)
		return io.MultiReader(bytes.NewReader(b), io.LimitReader(zeros{}, int64(body)))
	}
	cases := map[string]struct {
		from io.Reader
		want error
	}{
		"a signal":                {head(dbus.TypeSignal, large), io.EOF},
		"a call":                  {head(dbus.TypeMethodCall, large), io.EOF},
		"an answer":               {head(dbus.TypeMethodReply, large), ErrTooLarge},
		"an error":                {head(dbus.TypeError, large), ErrTooLarge},
		"an unknown message type": {head(99, large), io.EOF},
		"a line":                  {io.MultiReader(strings.NewReader("OK "), zeros{}), bufio.ErrBufferFull},
		"a small call":            {head(dbus.TypeMethodCall, 64), io.EOF},
		"half a header":           {strings.NewReader("l\x04\x00"), io.EOF},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			n, err := BoundedReader(tc.from).Read(make([]byte, 1024))
			runtime.ReadMemStats(&after)
			if n > 0 || !errors.Is(err, tc.want) {
				t.Errorf("read %d bytes, error %v, want %v", n, err, tc.want)
			}
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20 {
				t.Errorf("allocated %d bytes", allocated)
			}
		})
	}
}
