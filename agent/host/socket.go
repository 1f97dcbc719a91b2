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

// SocketOf returns the path below root of the socket that a D-Bus address names. It accepts only
// sockets of this host, although a D-Bus library also accepts addresses that dial another host or
// run a program.
func SocketOf(address, root string) (string, error) {
	pairs, isUnix := strings.CutPrefix(address, "unix:")
	if !isUnix || strings.ContainsAny(address, ";\x00") {
		return "", fmt.Errorf("address %.128q is not a socket of this host", address)
	}
	for pair := range strings.SplitSeq(pairs, ",") {
		key, escaped, _ := strings.Cut(pair, "=")
		value, err := dbus.UnescapeBusAddressValue(escaped)
		switch {
		case err != nil || strings.ContainsRune(value, 0):
			return "", fmt.Errorf("address %.128q cannot be read", address)
		case key == "path" && filepath.IsAbs(value):
			return filepath.Join(root, filepath.Clean(value)), nil
		case key == "abstract" && value != "": // of rpm-ostree before February 2023; reachable only in the host's network
			return "@" + value, nil
		}
	}
	return "", fmt.Errorf("address %.128q names no socket", address)
}

const (
	// maxSignalBytes limits the size of a signal. Any user of the host may send one of 128 MiB
	// straight to the agent, whatever its match rules are. A decoded message takes up to 15 times
	// as much.
	maxSignalBytes = 64 << 10
	// maxAnswerBytes limits the size of a reply.
	maxAnswerBytes = 1 << 20
	// fixedHeader is the size of the part of a message that contains its lengths.
	fixedHeader = 16
)

// ErrTooLarge ends a connection on which a service sent a larger reply than the agent reads.
var ErrTooLarge = errors.New("the answer is larger than 1 MiB")

// BoundedReader reads a D-Bus connection for godbus, which reads every message whole. It drops
// method calls, and signals that are too large or that godbus cannot decode. It returns ErrTooLarge
// for a reply that is too large.
func BoundedReader(connection io.Reader) io.Reader { return bounded(connection) }

func bounded(connection io.Reader) *boundedReader {
	return &boundedReader{in: bufio.NewReader(connection)}
}

type boundedReader struct {
	in *bufio.Reader
	// size is the size of the last message in bytes.
	size int
	// next is the unread rest of the current message or line.
	next bytes.Reader
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	for b.next.Len() == 0 {
		message, err := b.message()
		if err != nil {
			return 0, err
		}
		b.next.Reset(message)
	}
	return b.next.Read(p)
}

// message returns the next message, or nothing if the message is dropped. While it authenticates
// the agent, the server sends lines, which never begin like a message.
func (b *boundedReader) message() ([]byte, error) {
	first, err := b.in.Peek(1)
	if err != nil {
		return nil, err
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch first[0] {
	case 'l':
	case 'B':
		order = binary.BigEndian
	default:
		return b.in.ReadSlice('\n')
	}
	head, err := b.in.Peek(fixedHeader)
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
		_, err := io.CopyN(io.Discard, b.in, size)
		return nil, err
	}
	b.size = int(size)
	message := make([]byte, size)
	if _, err := io.ReadFull(b.in, message); err != nil {
		return nil, err
	}
	if !answer && !decodes(message) {
		return nil, nil
	}
	return message, nil
}

// decodes reports whether godbus can read a message. A message that it cannot read would end the
// connection, or even the process: godbus panics for some messages that the bus accepts.
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

// signals passes on the signals of a connection in order. Unlike other handlers of godbus, it has
// limits, because any user of the host can send signals faster than they are received. If the queue
// is full, a nil takes the place of the dropped signals. Then the state has to be read again.
type signals struct {
	from *boundedReader

	mu      sync.Mutex
	closed  bool
	channel chan<- *dbus.Signal
	// sizes are the sizes in bytes of the waiting signals. A nil has size zero.
	sizes []int
}

// DeliverSignal implements dbus.SignalHandler. The goroutine that reads the connection calls it.
func (s *signals) DeliverSignal(_, _ string, signal *dbus.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channel == nil {
		return
	}
	s.sizes = s.sizes[len(s.sizes)-len(s.channel):] // The earlier ones were received.
	queued := s.from.size
	for _, size := range s.sizes {
		if size == 0 {
			return // After a nil the state is read again, which covers this signal.
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

// AddSignal implements dbus.SignalRegistrar for a single channel with room for MaxQueued.
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

// Terminate implements dbus.Terminator. It closes the channel when the connection ends.
func (s *signals) Terminate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.channel != nil {
		close(s.channel)
	}
	s.closed, s.channel = true, nil
}
