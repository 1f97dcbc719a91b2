package controllers_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// requestLog notes what a client asks of the API server.
type requestLog struct {
	// cache is what the client's manager has read.
	cache client.Reader

	mu   sync.Mutex
	seen []string
	// meddle is called with each request before it is sent, to come in between, and to refuse it; nil: nobody does.
	meddle func(*http.Request) (refuse bool)
	// number is how many were seen beside watches, which end by themselves and are opened again, and beside what a notification of
	// an earlier spec may still ask: its Secret, and the event that it failed. off: they are counted only.
	number int
	off    bool
}

// keep reports whether requests are remembered from now on, or only counted.
func (l *requestLog) keep(are bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.off = !are
}

// len is how many requests were seen, beside watches and notifications.
func (l *requestLog) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.number
}

// meddleWith has somebody come in between from now on until the end of the spec.
func (l *requestLog) meddleWith(meddle func(*http.Request) (refuse bool)) {
	set := func(meddle func(*http.Request) bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.meddle = meddle
	}
	set(meddle)
	DeferCleanup(func() { set(nil) })
}

func (l *requestLog) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		notification := strings.Contains(r.URL.Path, "/secrets/") || strings.Contains(r.URL.Path, "/events")
		if r.URL.Query().Get("watch") != "true" && !notification {
			l.number++
		}
		if !l.off {
			l.seen = append(l.seen, r.Method+" "+r.URL.Path+"?"+r.URL.RawQuery)
		}
		if l.meddle != nil && l.meddle(r) {
			refusal := httptest.NewRecorder()
			refusal.WriteHeader(http.StatusForbidden)
			return refusal.Result(), nil
		}
		return next.RoundTrip(r)
	})
}

// count is how many requests beside watches and events have been made.
func (l *requestLog) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, r := range l.seen {
		if !strings.Contains(r, "watch=true") && !strings.Contains(r, "/events") {
			n++
		}
	}
	return n
}

func (l *requestLog) matching(method, part string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []string
	for _, r := range l.seen {
		if strings.HasPrefix(r, method+" ") && strings.Contains(r, part) {
			found = append(found, r)
		}
	}
	return found
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
