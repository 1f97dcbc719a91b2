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

// guid is what every server of the fake calls itself.
const guid = "0123456789abcdef0123456789abcdef"

// servePeer is the server's side of a connection without a bus: it authenticates whoever has connected, as strictly as
// the GLib of RHEL 9 does. The identity has to be in the first line, or the server waits for it without saying so; a
// client that then sends an empty one is thrown out.
func servePeer(socket net.Conn) (*dbus.Conn, error) {
	if err := authenticatePeer(socket); err != nil {
		return nil, fmt.Errorf("authenticating a peer: %w", err)
	}
	return dbus.NewConn(&scriptedAuth{Conn: socket, script: strings.NewReader("REJECTED EXTERNAL\r\nOK " + guid + "\r\n")})
}

// beginServing lets a peer's calls in. The objects are to be there before.
func beginServing(peer *dbus.Conn) error { return peer.Auth(nil) }

func authenticatePeer(socket net.Conn) error {
	if nul, err := readByte(socket); err != nil || nul != 0 {
		return fmt.Errorf("first byte %d: %w", nul, err)
	}
	for accepted := false; ; {
		line, err := readLine(socket)
		if err != nil {
			return err
		}
		answer := "ERROR \"Unknown Command\""
		switch {
		case line == "AUTH":
			answer = "REJECTED EXTERNAL"
		case line == "AUTH EXTERNAL":
			answer = ""
		case line == "AUTH EXTERNAL "+hex.EncodeToString([]byte(strconv.Itoa(os.Getuid()))):
			accepted, answer = true, "OK "+guid
		case line == "BEGIN" && accepted:
			return nil
		case strings.HasPrefix(line, "DATA"):
			return fmt.Errorf("unexpected line %q", line)
		}
		if answer != "" {
			if _, err := io.WriteString(socket, answer+"\r\n"); err != nil {
				return err
			}
		}
	}
}

// readLine takes one byte after the other: what follows the last line is not ours.
func readLine(socket io.Reader) (string, error) {
	var line []byte
	for !strings.HasSuffix(string(line), "\r\n") {
		b, err := readByte(socket)
		if err != nil {
			return "", err
		}
		line = append(line, b)
	}
	return strings.TrimSuffix(string(line), "\r\n"), nil
}

func readByte(socket io.Reader) (byte, error) {
	var b [1]byte
	_, err := io.ReadFull(socket, b[:])
	return b[0], err
}

// scriptedAuth is a connection that has been authenticated. godbus begins each connection as a client does, so it is
// played the server's part of that.
type scriptedAuth struct {
	net.Conn
	script *strings.Reader
	begun  bool
}

// Read reads the script to its end, and then from the peer.
func (s *scriptedAuth) Read(p []byte) (int, error) {
	if s.script.Len() > 0 {
		return s.script.Read(p)
	}
	return s.Conn.Read(p)
}

// Write swallows what godbus reports up to BEGIN.
func (s *scriptedAuth) Write(p []byte) (int, error) {
	if !s.begun {
		s.begun = string(p) == "BEGIN\r\n"
		return len(p), nil
	}
	return s.Conn.Write(p)
}
