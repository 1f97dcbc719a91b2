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
)

// server answers the first connection to a socket with a text. It returns the socket and the data
// that it receives.
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

func TestDialPeer_FailsIfNobodyListens(t *testing.T) {
	_, err := dialPeer(t.Context(), "/does/not/exist", make(chan *dbus.Signal, 1))
	if err == nil || !strings.Contains(err.Error(), "no such file or directory") {
		t.Errorf("error %v", err)
	}
}
