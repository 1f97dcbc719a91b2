package wire

import (
	"net/http"
	"net/url"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// parser reads requests as the API server does.
var parser = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// Info is a request in the API server's terms.
func Info(r *http.Request) *request.RequestInfo {
	info, err := parser.NewRequestInfo(r)
	if err != nil {
		panic(err)
	}
	return info
}

// What is a request's verb and resource, such as "list pods" and "create pods/eviction".
func What(r *http.Request) string {
	info := Info(r)
	name := info.Verb + " " + info.Resource
	if info.Subresource != "" {
		name += "/" + info.Subresource
	}
	return name
}

// Is chooses the requests of a verb and a resource.
func Is(name string) func(*http.Request) bool {
	return func(r *http.Request) bool { return What(r) == name }
}

// First returns a function that chooses only the first of the requests that which chooses.
func First(which func(*http.Request) bool) func(*http.Request) bool {
	done := false
	return func(r *http.Request) bool {
		first := !done && which(r)
		done = done || first
		return first
	}
}

// IsWatch chooses watches.
func IsWatch(r *http.Request) bool { return r.URL.Query().Has("watch") }

// IsWrite chooses requests that may change something.
func IsWrite(r *http.Request) bool { return r.Method != http.MethodGet }

// Requests records the requests that were sent. The zero value remembers all of them.
type Requests struct {
	// Others chooses requests that do not count. If nil, these are watches, which end by themselves
	// and are reopened.
	Others func(*http.Request) bool

	noted   sync.Mutex
	sent    []Request
	number  int
	forgets bool
}

// Request is a request that was sent.
type Request struct {
	Method string
	URL    url.URL
	// What is the verb and resource, and Name the name of the object.
	What, Name string
}

// Forget makes Requests only count requests from now on, or remember them again.
func (r *Requests) Forget(forgets bool) {
	r.noted.Lock()
	defer r.noted.Unlock()
	r.forgets = forgets
}

// Len returns the number of requests that count.
func (r *Requests) Len() int {
	r.noted.Lock()
	defer r.noted.Unlock()
	return r.number
}

// Matching returns the requests so far as METHOD PATH?QUERY, if they have the method and contain
// the part. An empty method matches all.
func (r *Requests) Matching(method, part string) []string {
	r.noted.Lock()
	defer r.noted.Unlock()
	var found []string
	for _, sent := range r.sent {
		text := sent.Method + " " + sent.URL.Path + "?" + sent.URL.RawQuery
		if strings.HasPrefix(text, method) && strings.Contains(text, part) {
			found = append(found, text)
		}
	}
	return found
}

// Counts returns the number of requests by verb and resource.
func (r *Requests) Counts() map[string]int {
	r.noted.Lock()
	defer r.noted.Unlock()
	counts := map[string]int{}
	for _, sent := range r.sent {
		counts[sent.What]++
	}
	return counts
}

// Of returns the requests with a verb and a resource.
func (r *Requests) Of(name string) (found []Request) {
	r.noted.Lock()
	defer r.noted.Unlock()
	for _, sent := range r.sent {
		if sent.What == name {
			found = append(found, sent)
		}
	}
	return found
}

func (r *Requests) note(sent *http.Request) {
	r.noted.Lock()
	defer r.noted.Unlock()
	if !IsWatch(sent) && (r.Others == nil || !r.Others(sent)) {
		r.number++
	}
	if !r.forgets {
		r.sent = append(r.sent, Request{Method: sent.Method, URL: *sent.URL, What: What(sent), Name: Info(sent).Name})
	}
}
