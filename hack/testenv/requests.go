package testenv

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Wire is for the config of a client: its requests go to a function, with what sends them.
func Wire(pass func(r *http.Request, next http.RoundTripper) (*http.Response, error)) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { return pass(r, next) })
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Requests are those that a program sends to the API server, over all its processes. The zero value remembers them all.
type Requests struct {
	// Others reports requests that do not count. Nil: all do, but for watches, which end by themselves and are opened again.
	Others func(*http.Request) bool

	mu      sync.Mutex
	sent    []string
	number  int
	forgets bool
	refuse  func(*http.Request) bool
}

// Forget makes requests only be counted from now on, or be remembered again.
func (r *Requests) Forget(forgets bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgets = forgets
}

// Refuse calls a function before each request is sent, for one at a time. Those for which it returns true are answered as the API
// server does where a right is missing. Nil: none is.
func (r *Requests) Refuse(refuse func(*http.Request) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = refuse
}

// Len is how many requests count so far.
func (r *Requests) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.number
}

// Matching lists the requests so far, as METHOD PATH?QUERY: those of a method that have a part in them. Of an empty method: all.
func (r *Requests) Matching(method, part string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, sent := range r.sent {
		if strings.HasPrefix(sent, method) && strings.Contains(sent, part) {
			found = append(found, sent)
		}
	}
	return found
}

// Wrap is for the config of the program's clients.
func (r *Requests) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if r.refuses(request) {
			return forbidden(request), nil
		}
		return next.RoundTrip(request)
	})
}

func (r *Requests) refuses(request *http.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !request.URL.Query().Has("watch") && (r.Others == nil || !r.Others(request)) {
		r.number++
	}
	if !r.forgets {
		r.sent = append(r.sent, request.Method+" "+request.URL.Path+"?"+request.URL.RawQuery)
	}
	return r.refuse != nil && r.refuse(request)
}

func forbidden(request *http.Request) *http.Response {
	return Answer(request, http.StatusForbidden, Failure(metav1.Status{Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "it is forbidden"}))
}

// Failure is a status as an API server answers with it.
func Failure(status metav1.Status) metav1.Status {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	status.Status = metav1.StatusFailure
	return status
}

// Answer is an API server's answer that no API server gave.
func Answer(request *http.Request, code int, content any) *http.Response {
	text, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: code, Request: request, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}
}
