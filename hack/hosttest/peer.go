package hosttest

import (
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/godbus/dbus/v5"
)

// guid is the GUID of every server of the fake.
const guid = "0123456789abcdef0123456789abcdef"

// servePeer is the server's side of a connection without a bus. It authenticates the client. The
// GLib of RHEL 9 accepts a client only if its first line contains its identity.
func servePeer(socket net.Conn) (*dbus.Conn, error) {
	if err := authenticatePeer(socket); err != nil {
		return nil, fmt.Errorf("authenticating a peer: %w", err)
	}
	answers := strings.NewReader("REJECTED EXTERNAL\r\nOK " + guid + "\r\n")
	return dbus.NewConn(&authenticated{Reader: io.MultiReader(answers, socket), WriteCloser: socket})
}

// beginServing starts to accept calls of a peer. Its objects must be exported before.
func beginServing(peer *dbus.Conn) error { return peer.Auth(nil) }

func authenticatePeer(socket net.Conn) error {
	identity := hex.EncodeToString([]byte(strconv.Itoa(os.Getuid())))
	if err := expect(socket, "\x00AUTH EXTERNAL "+identity+"\r\n"); err != nil {
		return err
	}
	if _, err := io.WriteString(socket, "OK "+guid+"\r\n"); err != nil {
		return err
	}
	return expect(socket, "BEGIN\r\n")
}

// expect reads exactly the bytes that a client has to send.
func expect(socket io.Reader, want string) error {
	got := make([]byte, len(want))
	if _, err := io.ReadFull(socket, got); err != nil {
		return err
	}
	if string(got) != want {
		return fmt.Errorf("got %q, want %q", got, want)
	}
	return nil
}

// authenticated is an authenticated connection. godbus begins each connection as a client, so it
// first reads replies of a server.
type authenticated struct {
	io.Reader
	io.WriteCloser

	begun bool
}

// Write drops the bytes that godbus writes up to BEGIN.
func (a *authenticated) Write(p []byte) (int, error) {
	if !a.begun {
		a.begun = string(p) == "BEGIN\r\n"
		return len(p), nil
	}
	return a.WriteCloser.Write(p)
}
