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
	what := info.Verb + " " + info.Resource
	if info.Subresource != "" {
		what += "/" + info.Subresource
	}
	return what
}

// Is chooses the requests of a verb and a resource.
func Is(what string) func(*http.Request) bool {
	return func(r *http.Request) bool { return What(r) == what }
}

// First chooses the first of those that are chosen.
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

// IsWrite chooses what may change something.
func IsWrite(r *http.Request) bool { return r.Method != http.MethodGet }

// Requests are those that were sent. The zero value remembers them all.
type Requests struct {
	// Others reports requests that do not count. Nil: all do, but for watches, which end by themselves and are opened again.
	Others func(*http.Request) bool

	noted   sync.Mutex
	sent    []Request
	number  int
	forgets bool
}

// Request is one that was sent.
type Request struct {
	Method string
	URL    url.URL
	// What is its verb and resource, and Name the object's.
	What, Name string
}

// Forget makes requests only be counted from now on, or be remembered again.
func (r *Requests) Forget(forgets bool) {
	r.noted.Lock()
	defer r.noted.Unlock()
	r.forgets = forgets
}

// Len is how many requests count so far.
func (r *Requests) Len() int {
	r.noted.Lock()
	defer r.noted.Unlock()
	return r.number
}

// Matching lists the requests so far, as METHOD PATH?QUERY: those of a method that have a part in them. Of an empty method: all.
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

// Counts is how many requests there were of each verb and resource so far.
func (r *Requests) Counts() map[string]int {
	r.noted.Lock()
	defer r.noted.Unlock()
	counts := map[string]int{}
	for _, sent := range r.sent {
		counts[sent.What]++
	}
	return counts
}

// Of lists the requests of a verb and a resource so far.
func (r *Requests) Of(what string) (found []Request) {
	r.noted.Lock()
	defer r.noted.Unlock()
	for _, sent := range r.sent {
		if sent.What == what {
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
