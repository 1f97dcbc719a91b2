// Package wire is the network between the operator and the API server. It can fail in every way a network and an API server do.
package wire

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/machine"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// errLost is what a client sees of an answer that got lost.
var errLost = errors.New("net/http: request canceled (Client.Timeout exceeded while awaiting headers), by the wire")

// errCut is what a client sees when its line is cut.
var errCut = errors.New("connection reset by the wire")

// Wire carries requests to one API server. Its methods may be called from any goroutine.
type Wire struct {
	next http.RoundTripper

	mu      sync.Mutex
	random  *rand.Rand
	rates   map[schedule.Kind]float64
	struck  map[schedule.Kind]int
	watches map[*stream]bool
}

// New makes a wire on which all is well.
func New(next http.RoundTripper) *Wire {
	return &Wire{next: next, random: rand.New(rand.NewPCG(0, 0)), rates: map[schedule.Kind]float64{}, struck: map[schedule.Kind]int{}, watches: map[*stream]bool{}}
}

// Seed draws the faults of requests anew, and forgets the counts.
func (w *Wire) Seed(seed uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.random = rand.New(rand.NewPCG(seed, 1))
	w.rates, w.struck = map[schedule.Kind]float64{}, map[schedule.Kind]int{}
}

// Set makes a part of all requests fail in a way; 0: none.
func (w *Wire) Set(kind schedule.Kind, rate float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rates[kind] = rate
}

// Count counts a fault that the wire has no part in.
func (w *Wire) Count(kind schedule.Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.struck[kind]++
}

// Struck is how many faults there were of each kind, those of requests by request.
func (w *Wire) Struck() map[schedule.Kind]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.struck)
}

// DropWatches cuts every watch.
func (w *Wire) DropWatches() {
	w.mu.Lock()
	cut := w.watches
	w.watches = map[*stream]bool{}
	w.struck[schedule.WatchesDropped] += len(cut)
	w.mu.Unlock()
	for s := range cut {
		s.Close()
	}
}

// draw chooses what becomes of a request.
func (w *Wire) draw(req *http.Request) schedule.Kind {
	w.mu.Lock()
	defer w.mu.Unlock()
	kinds := []schedule.Kind{schedule.TooMany, schedule.ServerError}
	if req.Method != http.MethodGet {
		kinds = append(kinds, schedule.Conflict, schedule.AnswerLost)
	}
	for _, kind := range kinds {
		if rate := w.rates[kind]; rate > 0 && w.random.Float64() < rate {
			w.struck[kind]++
			return kind
		}
	}
	return ""
}

func (w *Wire) roundTrip(req *http.Request) (*http.Response, error) {
	kind := w.draw(req)
	if _, answered := answers[kind]; answered {
		drainRequest(req)
		return answer(req, kind), nil
	}
	resp, err := w.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if kind == schedule.AnswerLost {
		_, _ = io.Copy(io.Discard, resp.Body) // it is lost anyway
		resp.Body.Close()
		return nil, errLost
	}
	return resp, nil
}

func isWatch(req *http.Request) bool {
	query := req.URL.RawQuery
	return strings.Contains(query, "watch=true") || strings.Contains(query, "watch=1")
}

func drainRequest(req *http.Request) {
	if req.Body != nil {
		_, _ = io.Copy(io.Discard, req.Body) // nobody reads it
		req.Body.Close()
	}
}

// Line is one client's part of the wire. It can be cut for good, or hold everything that passes for a while.
type Line struct {
	machine.Gate

	wire *Wire

	mu       sync.Mutex
	readOnly bool
	kept     func(*http.Request) bool
	keep     chan struct{} // closed when a request is kept
	// ctx is the life of the line, which its requests share: until it is cut, and from when it is restored.
	ctx context.Context //nolint:containedctx // as above
	end context.CancelFunc
}

// Line makes a line of a new client. Cut it when the client is gone.
func (w *Wire) Line(ctx context.Context) *Line {
	ctx, end := context.WithCancel(ctx)
	return &Line{wire: w, ctx: ctx, end: end}
}

// Cut makes everything fail, at once and until Restore.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end()
}

// ReadOnly lets reads pass, and makes everything else fail from now on.
func (l *Line) ReadOnly() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.readOnly = true
}

// Restore ends a cut.
func (l *Line) Restore(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx, l.end = context.WithCancel(ctx)
}

// Keep leaves the requests that are chosen unanswered, until their client gives up; watches that stand go on. The channel is closed
// with the first of them.
func (l *Line) Keep(which func(*http.Request) bool) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept, l.keep = which, make(chan struct{})
	return l.keep
}

// keeps reports whether a request is left unanswered.
func (l *Line) keeps(req *http.Request) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept == nil || !l.kept(req) {
		return false
	}
	select {
	case <-l.keep:
	default:
		close(l.keep)
	}
	return true
}

// Pass waits while the line is held, and fails while it is cut.
func (l *Line) Pass() error {
	l.mu.Lock()
	ctx := l.ctx
	l.mu.Unlock()
	if !l.Gate.Pass(ctx) {
		return errCut
	}
	return nil
}

// RoundTrip implements http.RoundTripper.
func (l *Line) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := l.Pass(); err != nil {
		drainRequest(req)
		return nil, err
	}
	if l.keeps(req) {
		drainRequest(req)
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	l.mu.Lock()
	ctx, refused := l.ctx, l.readOnly && req.Method != http.MethodGet
	l.mu.Unlock()
	if refused {
		drainRequest(req)
		return nil, errCut
	}
	life, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(ctx, cancel)
	resp, err := l.wire.roundTrip(req.WithContext(life))
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	body := &stream{ReadCloser: resp.Body, line: l, end: func() { stop(); cancel() }}
	resp.Body = body
	if isWatch(req) && resp.StatusCode == http.StatusOK {
		l.wire.mu.Lock()
		l.wire.watches[body] = true
		l.wire.mu.Unlock()
	}
	if err := l.Pass(); err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// stream is the body of an answer: it stops where the line is held.
type stream struct {
	io.ReadCloser
	line *Line
	end  func()
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if passed := s.line.Pass(); passed != nil {
		return 0, passed
	}
	return n, err
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.line.wire.mu.Lock()
	delete(s.line.wire.watches, s)
	s.line.wire.mu.Unlock()
	defer s.end()
	return s.ReadCloser.Close()
}

// answers are what an API server answers of each kind.
var answers = map[schedule.Kind]*apierrors.StatusError{
	schedule.Conflict:    apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, "", errors.New("the object has been modified")),
	schedule.TooMany:     apierrors.NewTooManyRequests("too many requests, please try again later", 1),
	schedule.ServerError: apierrors.NewInternalError(errors.New("etcdserver: leader changed")),
}

func answer(req *http.Request, kind schedule.Kind) *http.Response {
	status := testenv.Failure(answers[kind].Status())
	resp := testenv.Answer(req, int(status.Code), status)
	if kind == schedule.TooMany {
		resp.Header.Set("Retry-After", "1")
	}
	return resp
}
