package promserver

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Security is who may ask a server.
type Security struct {
	// Web is the text of web.config.yml: TLS and users. Empty: plain HTTP, for everybody.
	Web string
	// Client asks whether the server is ready. Nil: http.DefaultClient.
	Client *http.Client
}

func (s Security) scheme() string {
	if s.Web == "" {
		return "http"
	}
	return "https"
}

// Freeze makes the server take connections and answer nothing, until Resume. It returns once the server has stopped.
func (s *Server) Freeze() {
	s.signal(syscall.SIGSTOP)
	for s.running.Alive() && !s.stopped() {
		<-time.After(time.Millisecond)
	}
}

// stopped reports whether every thread is; one that is not yet may still answer.
func (s *Server) stopped() bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", s.running.Pid()))
	if err != nil {
		return true
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if err == nil && !bytes.Contains(text, []byte(") T ")) {
			return false
		}
	}
	return true
}

// Resume ends Freeze.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

// Stop ends the server before its test does.
func (s *Server) Stop(ctx context.Context) {
	s.Resume()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	s.running.Stop(ctx)
}

func (s *Server) signal(signal syscall.Signal) {
	if s.running.Alive() {
		_ = syscall.Kill(s.running.Pid(), signal) // it may have ended in between
	}
}
