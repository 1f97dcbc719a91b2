package host

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"

	"github.com/godbus/dbus/v5"
)

// SocketOf returns the socket that a D-Bus address names, below root. It takes only a socket of this host: a D-Bus library
// also takes addresses that dial another host or run a program.
func SocketOf(address, root string) (string, error) {
	pairs, isUnix := strings.CutPrefix(address, "unix:")
	if !isUnix || strings.ContainsAny(address, ";\x00") {
		return "", fmt.Errorf("address %.128q is no socket of this host", address)
	}
	for pair := range strings.SplitSeq(pairs, ",") {
		key, escaped, _ := strings.Cut(pair, "=")
		value, err := dbus.UnescapeBusAddressValue(escaped)
		switch {
		case err != nil || strings.ContainsRune(value, 0):
			return "", fmt.Errorf("address %.128q cannot be read", address)
		case key == "path" && filepath.IsAbs(value):
			return filepath.Join(root, filepath.Clean(value)), nil
		case key == "abstract" && value != "": // rpm-ostree before February 2023; reachable in the host's network only
			return "@" + value, nil
		}
	}
	return "", fmt.Errorf("address %.128q names no socket", address)
}

const (
	// maxSignalBytes bounds a signal: any user of the host may send one of 128 MiB straight to the agent,
	// whatever its match rules are. Decoded, a message takes up to 15 times as much.
	maxSignalBytes = 64 << 10
	// maxAnswerBytes bounds what a service answers.
	maxAnswerBytes = 1 << 20
	// fixedHeader is the part of a message that has its lengths.
	fixedHeader = 16
)

// ErrTooLarge ends a connection on which a service answered with more than the agent reads.
var ErrTooLarge = errors.New("the answer is larger than 1 MiB")

// BoundedReader reads a D-Bus connection for godbus, which reads every message whole. It leaves out what
// nobody waits for: method calls, and signals that are too large or that godbus cannot decode. It returns
// ErrTooLarge for an answer that is too large.
func BoundedReader(connection io.Reader) io.Reader { return bounded(connection) }

func bounded(connection io.Reader) *boundedReader {
	return &boundedReader{in: bufio.NewReader(connection)}
}

type boundedReader struct {
	in *bufio.Reader
	// size is that of the last message, in bytes.
	size int
	// next is the unread rest of the current message or line.
	next bytes.Reader
}

// Read implements io.Reader.
func (r *boundedReader) Read(p []byte) (int, error) {
	for r.next.Len() == 0 {
		message, err := r.message()
		if err != nil {
			return 0, err
		}
		r.next.Reset(message)
	}
	return r.next.Read(p)
}

// message returns the next message, or nothing if it is left out. The server sends lines while it
// authenticates the agent; a message never begins like one.
func (r *boundedReader) message() ([]byte, error) {
	first, err := r.in.Peek(1)
	if err != nil {
		return nil, err
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch first[0] {
	case 'l':
	case 'B':
		order = binary.BigEndian
	default:
		return r.in.ReadSlice('\n')
	}
	head, err := r.in.Peek(fixedHeader)
	if err != nil {
		return nil, err
	}
	kind, body, fields := dbus.Type(head[1]), int64(order.Uint32(head[4:])), int64(order.Uint32(head[12:]))
	size := fixedHeader + (fields+7)/8*8 + body
	answer := kind == dbus.TypeMethodReply || kind == dbus.TypeError
	switch {
	case answer && size > maxAnswerBytes:
		return nil, ErrTooLarge
	case !answer && (kind != dbus.TypeSignal || size > maxSignalBytes):
		_, err := io.CopyN(io.Discard, r.in, size)
		return nil, err
	}
	r.size = int(size)
	message := make([]byte, size)
	if _, err := io.ReadFull(r.in, message); err != nil {
		return nil, err
	}
	if !answer && !decodes(message) {
		return nil, nil
	}
	return message, nil
}

// decodes reports whether godbus can read a message. One that it cannot read would end the connection, or
// the process: it panics for some that the bus lets pass.
func decodes(message []byte) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	_, err := dbus.DecodeMessage(bytes.NewReader(message))
	return err == nil
}

// MaxQueued limits the number of signals that wait to be received, and maxQueuedBytes their total
// size.
const (
	MaxQueued      = 64
	maxQueuedBytes = 256 << 10
)

// signals passes the signals of a connection on in the order in which they came. Other handlers of godbus keep any number
// of them, and any user of the host can send them faster than they are received. If there is no room for one, a nil takes
// its place: signals are missing, and what they report has to be read again.
type signals struct {
	from *boundedReader

	mu      sync.Mutex
	closed  bool
	channel chan<- *dbus.Signal
	// sizes are those of the signals that wait, in bytes. That of a nil is zero.
	sizes []int
}

// DeliverSignal implements dbus.SignalHandler. It is called by the goroutine that reads the connection.
func (s *signals) DeliverSignal(_, _ string, signal *dbus.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channel == nil {
		return
	}
	s.sizes = s.sizes[len(s.sizes)-len(s.channel):] // The others were received.
	queued := s.from.size
	for _, size := range s.sizes {
		if size == 0 {
			return // What comes after the nil will be read again with what came before it.
		}
		queued += size
	}
	size := s.from.size
	if len(s.sizes)+1 >= cap(s.channel) || queued > maxQueuedBytes {
		signal, size = nil, 0
	}
	s.channel <- signal
	s.sizes = append(s.sizes, size)
}

// AddSignal implements dbus.SignalRegistrar, for one channel with room for MaxQueued.
func (s *signals) AddSignal(channel chan<- *dbus.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.channel = channel
	}
}

// RemoveSignal implements dbus.SignalRegistrar.
func (s *signals) RemoveSignal(chan<- *dbus.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.channel = nil
}

// Terminate implements dbus.Terminator: the channel ends with the connection.
func (s *signals) Terminate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channel != nil {
		close(s.channel)
	}
	s.closed, s.channel = true, nil
}
