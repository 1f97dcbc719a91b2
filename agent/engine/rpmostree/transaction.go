package rpmostree

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/internal/message"
)

const (
	transactionPath = dbus.ObjectPath("/")
	// cancelLimit is the time that a cancelled transaction has to end before it is left alone. The
	// agent has 5 seconds to stop.
	cancelLimit = 2 * time.Second
)

var (
	// errFailed means that the transaction failed.
	errFailed = errors.New("rpm-ostree failed")
	// errJoined means that another client began the same transaction first, and runs it.
	errJoined = errors.New("another client runs the transaction")
	// errHungUp means that the connection of a transaction broke before its end was reported.
	errHungUp = errors.New("rpm-ostree closed the connection before the end")
)

// transaction is a piece of work of rpm-ostree with its private connection.
type transaction struct {
	peer    *dbus.Conn
	signals <-chan *dbus.Signal
	// progressed is called with each progress report of the transaction.
	progressed func(progress)
	// malformed is called for each signal that cannot be read.
	malformed func(error)
}

// run starts the work and waits for its end. After an error for which isEnd is false, the work must
// be abandoned.
func (t transaction) run(ctx context.Context, limit <-chan time.Time) error {
	var started bool
	if err := t.call(ctx, "Start").Store(&started); err != nil {
		return fmt.Errorf("starting the transaction: %w", err)
	}
	if !started {
		return errJoined
	}
	return t.wait(ctx, limit)
}

// errOverdue means that a transaction exceeded the Driver's Limit.
var errOverdue = errors.New("the transaction took too long")

// wait returns nil once the work is done. Clients that join later do not matter.
func (t transaction) wait(ctx context.Context, limit <-chan time.Time) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-limit:
			return errOverdue
		case signal, open := <-t.signals:
			if !open {
				return errHungUp
			}
			if ended, err := t.receive(signal); ended {
				return err
			}
		}
	}
}

// receive handles one signal. It reports whether that is the end of the transaction, and its
// failure.
func (t transaction) receive(signal *dbus.Signal) (ended bool, failure error) {
	if signal == nil || !strings.HasPrefix(signal.Name, transactionInterface+".") {
		return false, nil // The signal is from somebody else.
	}
	p, err := decodeProgress(signal.Name, signal.Body)
	switch {
	case err != nil:
		t.malformed(err)
	case p.finished && p.succeeded:
		return true, nil
	case p.finished:
		return true, fmt.Errorf("%w: %s", errFailed, p.text)
	case p.text != "":
		t.progressed(p)
	}
	return false, nil
}

// isEnd reports whether a transaction that returned err does not have to be cancelled.
func isEnd(err error) bool {
	return err == nil || errors.Is(err, errFailed) || errors.Is(err, errJoined) || errors.Is(err, errHungUp)
}

// abandon cancels the work and gives it a moment to end, even if ctx has ended. Work that does not
// end is left to rpm-ostree and blocks the next round.
func (t transaction) abandon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelLimit)
	defer cancel()
	if err := t.call(ctx, "Cancel").Err; err != nil {
		return fmt.Errorf("cancelling the transaction: %w", err)
	}
	if err := t.wait(ctx, nil); !isEnd(err) {
		return fmt.Errorf("waiting for the transaction to end after it was cancelled: %w", err)
	}
	return nil
}

// call calls a method of the transaction. The objects of godbus cannot be used without a bus,
// because they would name an empty destination, which is invalid.
func (t transaction) call(ctx context.Context, method string) *dbus.Call {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	message := &dbus.Message{Type: dbus.TypeMethodCall, Headers: map[dbus.HeaderField]dbus.Variant{
		dbus.FieldPath:      dbus.MakeVariant(transactionPath),
		dbus.FieldInterface: dbus.MakeVariant(transactionInterface),
		dbus.FieldMember:    dbus.MakeVariant(method),
	}}
	return <-t.peer.SendWithContext(ctx, message, nil).Done
}

// maxTextBytes limits the text of a progress report.
const maxTextBytes = 256

// progress is one progress report of a transaction.
type progress struct {
	// text is a line for people, valid UTF-8 of at most maxTextBytes. For a failed end it is the
	// reason.
	text string
	// percent is the progress of the step in text. It is 0 if the step has just begun or the
	// progress is unknown.
	percent uint32
	// finished reports whether this is the end, and succeeded whether the transaction succeeded.
	finished, succeeded bool
}

// decodeProgress reads a signal of interface Transaction. The result is zero for signals without
// information for people.
func decodeProgress(name string, body []any) (p progress, err error) {
	member, _ := strings.CutPrefix(name, transactionInterface+".")
	ok := true
	switch member {
	case "Finished":
		p.finished = true
		p.succeeded, p.text, ok = pair[bool, string](body)
	case "PercentProgress":
		p.text, p.percent, ok = pair[string, uint32](body)
	case "Message", "TaskBegin":
		if ok = len(body) == 1; ok {
			p.text, ok = body[0].(string)
		}
	case "DownloadProgress":
		return decodeDownload(body)
	}
	if !ok {
		return progress{}, fmt.Errorf("%.32s: types other than it has", member)
	}
	p.text, p.percent = message.Shorten(maxTextBytes, p.text), min(p.percent, 100)
	return p, nil
}

// decodeDownload reads (tt)(uu)(uuu)(uuut)(uu)(tt). The second-to-last pair is the number of
// objects fetched and the number to fetch.
func decodeDownload(body []any) (progress, error) {
	if len(body) != 6 {
		return progress{}, fmt.Errorf("DownloadProgress: %d values instead of 6", len(body))
	}
	content, _ := body[4].([]any)
	fetched, requested, ok := pair[uint32, uint32](content)
	if !ok {
		return progress{}, errors.New("DownloadProgress: types other than it has")
	}
	p := progress{text: fmt.Sprintf("Downloading %d of %d objects", fetched, requested)}
	if requested > 0 {
		p.percent = uint32(min(uint64(fetched)*100/uint64(requested), 100))
	}
	return p, nil
}

// pair returns two values if they have the expected types.
func pair[A, B any](values []any) (a A, b B, ok bool) {
	if len(values) != 2 {
		return a, b, false
	}
	a, aOK := values[0].(A)
	b, bOK := values[1].(B)
	return a, b, aOK && bOK
}
