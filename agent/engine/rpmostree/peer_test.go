package rpmostree

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/google/go-cmp/cmp"
)

func TestSocketOf(t *testing.T) {
	cases := map[string]struct{ address, root, want string }{
		"the socket of today":           {"unix:path=/run/rpm-ostree-transaction.sock", "", "/run/rpm-ostree-transaction.sock"},
		"below the host's root":         {"unix:path=/run/rpm-ostree-transaction.sock", "/host", "/host/run/rpm-ostree-transaction.sock"},
		"the root itself":               {"unix:path=/run/a", "/", "/run/a"},
		"with the server's name":        {"unix:path=/run/a,guid=0123456789abcdef0123456789abcdef", "/host", "/host/run/a"},
		"the server's name first":       {"unix:guid=0123456789abcdef0123456789abcdef,path=/run/a", "/host", "/host/run/a"},
		"escaped":                       {"unix:path=/run/a%20b", "/host", "/host/run/a b"},
		"an abstract socket of before":  {"unix:abstract=/tmp/dbus-a,guid=0", "/host", "@/tmp/dbus-a"},
		"no way out of the host's root": {"unix:path=/../../etc/a", "/host", "/host/etc/a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := socketOf(tc.address, tc.root)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("socket (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSocketOf_RefusesWhatIsNoSocketOfThisHost(t *testing.T) {
	cases := map[string]struct{ address, want string }{
		"nothing":               {"", `address "" is no socket of this host`},
		"another host":          {"tcp:host=198.51.100.1,port=1", `address "tcp:host=198.51.100.1,port=1" is no socket of this host`},
		"a program":             {"unixexec:path=/bin/sh", `address "unixexec:path=/bin/sh" is no socket of this host`},
		"a choice":              {"unix:path=/a;tcp:host=b", `address "unix:path=/a;tcp:host=b" is no socket of this host`},
		"no path":               {"unix:", `address "unix:" names no socket`},
		"an empty path":         {"unix:path=", `address "unix:path=" names no socket`},
		"a relative path":       {"unix:path=a", `address "unix:path=a" names no socket`},
		"a folder to listen in": {"unix:tmpdir=/tmp", `address "unix:tmpdir=/tmp" names no socket`},
		"a bad escape":          {"unix:path=/a%zz", `address "unix:path=/a%zz" cannot be read`},
		"the end of a C string": {"unix:path=/a%00b", `address "unix:path=/a%00b" cannot be read`},
		"without end":           {strings.Repeat("x", 1<<20), `address "` + strings.Repeat("x", 128) + `" is no socket of this host`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := socketOf(tc.address, "/host")
			if err == nil {
				t.Fatalf("found %q", got)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzSocketOf checks that a socket is below the root, or abstract.
func FuzzSocketOf(f *testing.F) {
	f.Add("unix:path=/run/rpm-ostree-transaction.sock")
	f.Add("unix:abstract=a,guid=b")
	f.Add("unix:path=/../..")
	f.Add("unix:path=%2f%2e%2e")
	f.Add("tcp:host=a;unix:path=/b")
	f.Fuzz(func(t *testing.T, address string) {
		socket, err := socketOf(address, "/host")
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

// server answers the first connection to a socket with a text and returns the socket, and what it receives meanwhile.
func server(t *testing.T, answer string) (socket string, received <-chan string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	lines := make(chan string, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, answer)
		all, _ := io.ReadAll(conn)
		lines <- string(all)
	}()
	return socket, lines
}

func TestDialPeer_AuthenticatesInTheFirstLine(t *testing.T) {
	socket, received := server(t, "OK 0123456789abcdef0123456789abcdef\r\n")
	peer, err := dialPeer(t.Context(), socket, make(chan *dbus.Signal, 1))
	if err != nil {
		t.Fatal(err)
	}
	_ = peer.Close()
	got := <-received
	if !strings.HasPrefix(got, "\x00AUTH EXTERNAL 3") || !strings.HasSuffix(got, "\r\nBEGIN\r\n") || strings.Count(got, "\r\n") != 2 {
		t.Errorf("reported %q", got)
	}
}

func TestDialPeer_RefusesAServerThatRefuses(t *testing.T) {
	for name, answer := range map[string]string{
		"refused":          "REJECTED DBUS_COOKIE_SHA1\r\n",
		"asked":            "DATA\r\n",
		"no such protocol": "HTTP/1.1 400 Bad Request\r\n",
		"without end":      strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			socket, _ := server(t, answer)
			_, err := dialPeer(t.Context(), socket, make(chan *dbus.Signal, 1))
			if err == nil || !strings.HasPrefix(err.Error(), `authenticating at "`+socket+`": `) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestDialPeer_StopsWhileTheServerIsSilent_Behaviour58(t *testing.T) {
	socket, _ := server(t, "")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := dialPeer(ctx, socket, make(chan *dbus.Signal, 1)); err == nil || !strings.Contains(err.Error(), "deadline exceeded") {
		t.Errorf("error %v", err)
	}
}

func TestDialPeer_ReportsThatNobodyListens(t *testing.T) {
	_, err := dialPeer(t.Context(), "/does/not/exist", make(chan *dbus.Signal, 1))
	if err == nil || !strings.Contains(err.Error(), "no such file or directory") {
		t.Errorf("error %v", err)
	}
}
