package drain_test

import (
	"io"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// wire records the requests of a client and may tamper with them.
type wire struct {
	mu       sync.Mutex
	requests []request
	tamper   func(r request, send sendFunc) (*http.Response, error)
}

// request is what a spec needs to know of one.
type request struct {
	what string // "LIST pods", "EVICT", "WATCH poddisruptionbudgets"
	name string // the last name in the path, "" for collections
	nth  int    // it is the nth of its kind and name, from 1
	from string // the resource version a watch begins at
	done <-chan struct{}
}

type sendFunc func() (*http.Response, error)

func (w *wire) pass(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	seen := w.record(r)
	send := func() (*http.Response, error) { return next.RoundTrip(r) }
	if w.tamper != nil {
		return w.tamper(seen, send)
	}
	return send()
}

func (w *wire) record(r *http.Request) request {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := describe(r)
	seen.from, seen.done = r.URL.Query().Get("resourceVersion"), r.Context().Done()
	for _, other := range w.requests {
		if other.what == seen.what && other.name == seen.name {
			seen.nth++
		}
	}
	seen.nth++
	w.requests = append(w.requests, seen)
	return seen
}

func describe(r *http.Request) request {
	// /api/v1/… or /apis/GROUP/VERSION/…, then namespaces/NAME/ where there is more to come.
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	parts = parts[2:]
	if strings.HasPrefix(r.URL.Path, "/apis/") {
		parts = parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	verb := r.Method
	switch {
	case r.URL.Query().Get("watch") != "":
		verb = "WATCH"
	case verb == http.MethodGet && len(parts) == 1:
		verb = "LIST"
	case len(parts) == 3 && parts[2] == "eviction":
		return request{what: "EVICT", name: parts[1]}
	}
	seen := request{what: verb + " " + parts[0]}
	if len(parts) > 1 {
		seen.name = parts[1]
	}
	return seen
}

// counts is how many requests of each kind were sent.
func (w *wire) counts() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := map[string]int{}
	for _, r := range w.requests {
		counts[r.what]++
	}
	return counts
}

// evictions are the pods asked to leave, in the order of the requests.
func (w *wire) evictions() []string {
	return w.each("EVICT", func(r request) string { return r.name })
}

// each is something of each request of a kind.
func (w *wire) each(what string, of func(request) string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []string{}
	for _, r := range w.requests {
		if r.what == what {
			all = append(all, of(r))
		}
	}
	return all
}

// watches are the resource versions that watches of pods began at.
func (w *wire) watches() []string {
	return w.each("WATCH pods", func(r request) string { return r.from })
}

// answerWith is a refusal that no API server gave.
func answerWith(status metav1.Status) (*http.Response, error) {
	return testenv.Answer(nil, int(status.Code), testenv.Failure(status)), nil
}

// eventWith is a watch that brings one ERROR event.
func eventWith(status metav1.Status) (*http.Response, error) {
	return testenv.Answer(nil, http.StatusOK, map[string]any{"type": "ERROR", "object": testenv.Failure(status)}), nil
}

// answersFirst answers the first request of a kind.
func (w *wire) answersFirst(what string, status metav1.Status) {
	w.tamper = func(r request, send sendFunc) (*http.Response, error) {
		if r.what == what && r.nth == 1 {
			return answerWith(status)
		}
		return send()
	}
}

// cutsFirst makes the first answer to a kind of request end when the channel is closed.
func (w *wire) cutsFirst(what string) (cut chan struct{}) {
	cut = make(chan struct{})
	w.tamper = func(r request, send sendFunc) (*http.Response, error) {
		resp, err := send()
		if err == nil && r.what == what && r.nth == 1 {
			cutBody(resp, cut)
		}
		return resp, err
	}
	return cut
}

// cutBody makes an answer end, as if the server had closed it, when the channel is closed.
func cutBody(resp *http.Response, cut <-chan struct{}) {
	sent := resp.Body
	received, answer := io.Pipe()
	resp.Body = received
	go func() {
		_, err := io.Copy(answer, sent)
		answer.CloseWithError(err)
	}()
	go func() {
		<-cut
		answer.Close()
		sent.Close()
	}()
}
