package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// beat is the interval of keep-alives. After three missed ones the page says that it is outdated.
const beat = 15 * time.Second

// Server serves the page to one person's browser on this machine. Other programs, other users and
// web sites do not know the token in its path. The check of the Host header protects against DNS
// rebinding.
type Server struct {
	token string
	clock clock.WithTicker

	mu   sync.Mutex
	page Page
	// changed is closed when a newer page exists.
	changed chan struct{}
}

// NewServer returns a server that serves nothing until Show is called.
func NewServer(clock clock.WithTicker) *Server {
	token := make([]byte, 24)
	_, _ = rand.Read(token) // never fails
	return &Server{token: base64.RawURLEncoding.EncodeToString(token), clock: clock, changed: make(chan struct{})}
}

// Path is the path of the page.
func (s *Server) Path() string { return "/" + s.token + "/" }

// Show replaces the page.
func (s *Server) Show(page Page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.page = page
	close(s.changed)
	s.changed = make(chan struct{})
}

// current returns the page, and a channel that is closed when a newer one exists.
func (s *Server) current() (Page, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.page, s.changed
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", Policy()+"; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	token, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case !local(r.Host):
		http.Error(w, "this page can be opened at 127.0.0.1 and localhost only", http.StatusForbidden)
	case r.Method != http.MethodGet:
		h.Set("Allow", http.MethodGet)
		http.Error(w, "this page can only be read (GET)", http.StatusMethodNotAllowed)
	case subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1:
		http.Error(w, "not found: use the whole address that kubectl reboot dashboard printed, with its token", http.StatusNotFound)
	case rest == "":
		page, _ := s.current()
		h.Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, page.HTML) // an error means that the browser has gone
	case rest == "explain":
		page, _ := s.current()
		h.Set("Content-Type", "text/plain; charset=utf-8")
		if page.Explain != nil {
			_, _ = io.WriteString(w, page.Explain(r.URL.Query().Get("node")))
		}
	case rest == "events":
		s.stream(w, r)
	default:
		http.NotFound(w, r)
	}
}

// local reports whether a Host header names this machine. It ignores the port, which may be
// forwarded.
func local(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	return slices.Contains([]string{"127.0.0.1", "localhost", "::1", "[::1]"}, name)
}

// stream sends all sections first and then the changed ones, until the browser or the server ends.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	ticker := s.clock.NewTicker(beat)
	defer ticker.Stop()
	sent := map[string]string{}
	for {
		page, changed := s.current()
		if news := difference(sent, page.Sections); len(news) > 0 && !send(w, "data: "+encoded(news)+"\n") {
			return
		}
		sent = page.Sections
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-ticker.C():
			if !send(w, "event: beat\ndata:\n\n") {
				return
			}
		}
	}
}

// difference returns the sections that have changed.
func difference(before, after map[string]string) map[string]string {
	changed := maps.Clone(after)
	maps.DeleteFunc(changed, func(name, html string) bool { return before[name] == html })
	return changed
}

// encoded encodes sections as one line of JSON.
func encoded(sections map[string]string) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(sections) // strings never fail
	return b.String()
}

// send sends an event. It returns false if the browser has gone.
func send(w http.ResponseWriter, event string) bool {
	_, err := io.WriteString(w, event)
	return err == nil && http.NewResponseController(w).Flush() == nil
}
