package rpmostree

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/agent/host"
)

const (
	// dialLimit is the time-out of connecting and authenticating together.
	dialLimit = 10 * time.Second
	// maxAuthLine is longer than any reply of a server.
	maxAuthLine = 1024
)

// dialPeer connects to a program that serves D-Bus on a socket without a bus. The program's signals
// are sent to the channel, which is closed with the connection. The connection outlives ctx.
func dialPeer(ctx context.Context, socket string, signals chan<- *dbus.Signal) (*dbus.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	dialed, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	// Reads and writes do not take a context, but closing the socket ends them.
	stop := context.AfterFunc(ctx, func() { _ = dialed.Close() })
	peer, err := greetPeer(dialed, signals)
	if !stop() {
		err = errors.Join(ctx.Err(), err)
	}
	if err != nil {
		_ = dialed.Close()
		return nil, fmt.Errorf("authenticating at %q: %w", socket, err)
	}
	return peer, nil
}

func greetPeer(socket net.Conn, signals chan<- *dbus.Signal) (*dbus.Conn, error) {
	guid, err := authenticate(socket)
	if err != nil {
		return nil, err
	}
	answers := strings.NewReader("REJECTED EXTERNAL\r\nOK " + guid + "\r\n")
	over := &authenticated{Reader: host.BoundedReader(io.MultiReader(answers, socket)), WriteCloser: socket}
	peer, err := dbus.NewConn(over, dbus.WithSignalHandler(dbus.NewSequentialSignalHandler()))
	if err != nil {
		return nil, err
	}
	peer.Signal(signals)
	return peer, peer.Auth(nil)
}

// authenticate sends the user's identity in the first line and returns the GUID of the server.
// godbus leaves the identity out, and sends an empty one if the server asks for it. rpm-ostree uses
// GLib, which up to the release in RHEL 9 never asks, and in some later releases hangs up on an
// empty identity.
func authenticate(socket net.Conn) (string, error) {
	if err := sendCredentials(socket); err != nil {
		return "", err
	}
	user := hex.EncodeToString([]byte(strconv.Itoa(os.Geteuid())))
	if _, err := io.WriteString(socket, "AUTH EXTERNAL "+user+"\r\n"); err != nil {
		return "", err
	}
	answer, err := readAuthLine(socket)
	if err != nil {
		return "", err
	}
	guid, accepted := strings.CutPrefix(answer, "OK ")
	if !accepted || strings.Contains(guid, " ") {
		return "", fmt.Errorf("answer %.64q", answer)
	}
	_, err = io.WriteString(socket, "BEGIN\r\n")
	return guid, err
}

// sendCredentials sends the byte that begins each connection, together with credentials that the
// kernel verifies.
func sendCredentials(socket net.Conn) error {
	unix, ok := socket.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("a %T is not a socket of this host", socket)
	}
	sender := syscall.UnixCredentials(&syscall.Ucred{
		Pid: int32(os.Getpid()), Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid()),
	})
	_, _, err := unix.WriteMsgUnix([]byte{0}, sender, nil)
	return err
}

// readAuthLine reads byte by byte, because a message follows the line.
func readAuthLine(socket io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < maxAuthLine; {
		if _, err := io.ReadFull(socket, b); err != nil {
			return "", err
		}
		if line = append(line, b[0]); bytes.HasSuffix(line, []byte("\r\n")) {
			return string(line[:len(line)-2]), nil
		}
	}
	return "", errors.New("a line without end")
}

// authenticated is a socket after the authentication. godbus always authenticates by itself, so it
// first reads prepared replies, and everything that it writes up to BEGIN is dropped.
type authenticated struct {
	io.Reader
	io.WriteCloser

	begun bool
}

// Write drops everything up to BEGIN.
func (a *authenticated) Write(p []byte) (int, error) {
	if !a.begun {
		a.begun = string(p) == "BEGIN\r\n"
		return len(p), nil
	}
	return a.WriteCloser.Write(p)
}
