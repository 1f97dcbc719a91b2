// Package wire is the network between programs and the API server. It records requests, and can
// fail in every way that a network and an API server can.
package wire

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/reboot-operator/reboot-operator/hack/machine"
)

// ErrCut is the error of a client whose wire is cut.
var ErrCut = errors.New("connection reset by the wire")

// Func handles a request. next passes it on to the API server.
type Func func(r *http.Request, next http.RoundTripper) (*http.Response, error)

// Wrap makes a client's config send its requests to the function.
func (f Func) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) { return f(r, next) })
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Wire carries the requests of clients to an API server. It can be cut, or hold everything for a
// while. The zero value carries everything. Its methods may be called from any goroutine.
type Wire struct {
	machine.Gate
	Requests

	mu        sync.Mutex
	cut       bool
	exchanges map[*exchange]bool

	// choosing is held while a function chooses a request, which may take a while without blocking
	// other requests.
	choosing sync.Mutex
	which    func(*http.Request) bool
	meddle   Func
}

// Cut makes everything fail from now on until Restore.
func (w *Wire) Cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = true
	for e := range w.exchanges {
		e.end()
	}
}

// Restore ends a cut.
func (w *Wire) Restore() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut = false
}

// Drop ends the answers to the chosen requests, such as watches, with an error for their readers.
// It returns their number.
func (w *Wire) Drop(which func(*http.Request) bool, as error) (dropped int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for e := range w.exchanges {
		if e.answer != nil && e.dropped == nil && which(e.request) {
			e.dropped = as
			e.end()
			dropped++
		}
	}
	return dropped
}

// Meddle makes a function handle the requests that which chooses, one at a time, from now on. If
// which is nil it handles all, and if meddle is nil it ends.
func (w *Wire) Meddle(which func(*http.Request) bool, meddle Func) {
	w.choosing.Lock()
	defer w.choosing.Unlock()
	w.which, w.meddle = which, meddle
}

// Pass waits while the wire is held, and fails while it is cut.
func (w *Wire) Pass(ctx context.Context) error {
	e, err := w.begin(ctx)
	if err != nil {
		return err
	}
	defer e.over()
	return e.pass()
}

// Wrap makes a client's config send its requests over the wire.
func (w *Wire) Wrap(next http.RoundTripper) http.RoundTripper {
	return Func(w.carry).Wrap(next)
}

func (w *Wire) carry(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	e, err := w.begin(r.Context())
	if err != nil {
		return Refuse(r, next)
	}
	if err := e.pass(); err != nil {
		e.over()
		return Refuse(r, next)
	}
	w.note(r)
	response, err := w.becomes(r)(r.WithContext(e.life), next)
	if err == nil {
		if err = e.pass(); err != nil {
			response.Body.Close()
		}
	}
	if err != nil {
		e.over()
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e.request, e.answer, response.Body = r, response.Body, e
	return response, nil
}

// becomes returns the function that handles a request.
func (w *Wire) becomes(r *http.Request) Func {
	w.choosing.Lock()
	defer w.choosing.Unlock()
	if w.meddle != nil && (w.which == nil || w.which(r)) {
		return w.meddle
	}
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) { return next.RoundTrip(r) }
}

// exchange is a request with the body of its answer, which stops while the wire is held and ends
// when it is cut.
type exchange struct {
	wire *Wire
	life context.Context //nolint:containedctx // that of the exchange
	end  context.CancelFunc

	request *http.Request
	answer  io.ReadCloser
	dropped error // returned instead of the rest
}

func (w *Wire) begin(ctx context.Context) (*exchange, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cut {
		return nil, ErrCut
	}
	e := &exchange{wire: w}
	e.life, e.end = context.WithCancel(ctx)
	if w.exchanges == nil {
		w.exchanges = map[*exchange]bool{}
	}
	w.exchanges[e] = true
	return e, nil
}

func (e *exchange) over() {
	e.wire.mu.Lock()
	defer e.wire.mu.Unlock()
	delete(e.wire.exchanges, e)
	e.end()
}

func (e *exchange) pass() error {
	if !e.wire.Gate.Pass(e.life) {
		return ErrCut
	}
	return nil
}

// Read implements io.Reader.
func (e *exchange) Read(p []byte) (int, error) {
	n, err := e.answer.Read(p)
	passed := e.pass()
	e.wire.mu.Lock()
	defer e.wire.mu.Unlock()
	switch {
	case e.dropped != nil:
		return 0, e.dropped
	case passed != nil:
		return 0, passed
	}
	return n, err
}

// Close implements io.Closer.
func (e *exchange) Close() error {
	defer e.over()
	return e.answer.Close()
}
