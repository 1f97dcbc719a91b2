package rpmostree

import (
	"errors"
	"fmt"
	"strings"

	"github.com/godbus/dbus/v5"

	"github.com/reboot-operator/reboot-operator/internal/message"
)

// maxTextBytes is how much of what a transaction reports is passed on.
const maxTextBytes = 256

// progress is one thing a transaction reports of itself.
type progress struct {
	// text is a line for people; valid UTF-8 of at most maxTextBytes. Of an end that failed it gives the reason.
	text string
	// percent of the step that text names. 0: it has just begun, or nobody knows.
	percent uint32
	// finished reports that this was the end, succeeded how.
	finished, succeeded bool
}

// decodeProgress reads a signal of interface Transaction. Signals that report nothing for people are zero.
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

// decodeDownload reads (tt)(uu)(uuu)(uuut)(uu)(tt). The last but one are the objects fetched, and the objects to fetch.
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

// pair are two values of the types they should have.
func pair[A, B any](values []any) (a A, b B, ok bool) {
	if len(values) != 2 {
		return a, b, false
	}
	a, aOK := values[0].(A)
	b, bOK := values[1].(B)
	return a, b, aOK && bOK
}

// isOfTransaction distinguishes a transaction's signals from any other.
func isOfTransaction(signal *dbus.Signal) bool {
	return signal != nil && strings.HasPrefix(signal.Name, transactionInterface+".")
}
