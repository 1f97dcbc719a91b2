// Package promserver runs the Prometheus server and promtool of bin/prometheus in tests.
package promserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// Server is a Prometheus that runs until its test ends.
type Server struct {
	// URL is the address of its HTTP API, without a path.
	URL string

	client  *http.Client
	running *process.Process
}

// Security restricts access to a server.
type Security struct {
	// Web is the content of web.config.yml with TLS and users. If empty, the server uses plain HTTP
	// without authentication.
	Web string
	// Client is the client that checks whether the server is ready, or nil for http.DefaultClient.
	Client *http.Client
}

// Program returns the path of prometheus or promtool. It skips the test if `make prometheus` has
// not built them, or fails it if PROMETHEUS_REQUIRED is set, as in `make ci`.
func Program(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(testenv.Root(), "bin", "prometheus", name)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	if os.Getenv("PROMETHEUS_REQUIRED") != "" {
		t.Fatalf("%s is missing, and PROMETHEUS_REQUIRED is set: make prometheus", path)
	}
	testenv.NotShown(t, path+" is missing: make prometheus builds it")
	return ""
}

// Start starts a Prometheus with the given content of prometheus.yml, and waits until it answers
// queries. Relative paths in the configuration start at dir, or at the server's own folder if dir
// is empty.
func Start(t testing.TB, dir, config string) *Server {
	t.Helper()
	return StartSecured(t, dir, config, Security{})
}

// StartSecured is like Start, with restricted access.
func StartSecured(t testing.TB, dir, config string, security Security) *Server {
	t.Helper()
	program, data := Program(t, "prometheus"), t.TempDir()
	file, web := filepath.Join(cmp.Or(dir, data), "prometheus.yml"), filepath.Join(data, "web.yml")
	port, err := embedded.FreePort(t.Context())
	err = cmp.Or(err, os.WriteFile(file, []byte(config), 0o600), os.WriteFile(web, []byte(security.Web), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	address, scheme := fmt.Sprintf("127.0.0.1:%d", port), "http"
	args := []string{"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(data, "tsdb"), "--web.listen-address=" + address}
	if security.Web != "" {
		scheme = "https"
		args = append(args, "--web.config.file="+web)
	}
	group := process.NewGroup(data)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		group.Stop(ctx)
	})
	running, err := group.Start(process.Program{Name: "prometheus", Path: program, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{URL: scheme + "://" + address, client: cmp.Or(security.Client, http.DefaultClient), running: running}
	s.awaitReady(t)
	return s
}

// awaitReady waits until the server says that it is ready, or rejects a client without credentials.
func (s *Server) awaitReady(t testing.TB) {
	t.Helper()
	err := embedded.Await(t.Context(), "Prometheus to be ready", 2*time.Minute, s.running.ExitError, func(ctx context.Context) bool {
		status, _, err := s.get(ctx, "/-/ready")
		return err == nil && (status == http.StatusOK || status == http.StatusUnauthorized)
	})
	if err != nil {
		t.Fatalf("%v. It shows:\n%s", err, s.running.Tail(100))
	}
}

// Sample is one series in the answer to an instant query.
type Sample struct {
	Metric map[string]string `json:"metric"`
	// Value holds the time in seconds, and the value as text.
	Value [2]any `json:"value"`
}

// Query evaluates an expression that returns an instant vector.
func (s *Server) Query(ctx context.Context, expression string) ([]Sample, error) {
	var data struct{ Result []Sample }
	err := s.API(ctx, "query", url.Values{"query": {expression}}, &data)
	return data.Result, err
}

// API calls an endpoint below /api/v1 and decodes `data` of its answer. Errors have Prometheus'
// text.
func (s *Server) API(ctx context.Context, endpoint string, arguments url.Values, data any) error {
	_, body, err := s.get(ctx, "/api/v1/"+endpoint+"?"+arguments.Encode())
	if err != nil {
		return err
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", endpoint, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("asking Prometheus for %s: %s", endpoint, answer.Error)
	}
	return nil
}

// get returns the status and the body of an answer.
func (s *Server) get(ctx context.Context, path string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("making a request: %w", err)
	}
	response, err := s.client.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("asking Prometheus: %w", err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, nil, fmt.Errorf("reading Prometheus' answer: %w", err)
	}
	return response.StatusCode, body, nil
}

// Freeze makes the server accept connections but answer nothing, until Resume. It returns once the
// server has stopped.
func (s *Server) Freeze() {
	_ = s.running.Signal(syscall.SIGSTOP) // it may have ended
	for s.running.Alive() && !s.stopped() {
		<-time.After(time.Millisecond)
	}
}

// stopped reports whether every thread has stopped. A running thread may still answer.
func (s *Server) stopped() bool {
	threads, err := procfs.AllThreads(s.running.Pid())
	return err != nil || !slices.ContainsFunc(threads, func(thread procfs.Proc) bool {
		stat, err := thread.Stat()
		return err == nil && stat.State != "T"
	})
}

// Resume ends Freeze.
func (s *Server) Resume() { _ = s.running.Signal(syscall.SIGCONT) } // it may have ended

// Stop stops the server before the end of its test.
func (s *Server) Stop(ctx context.Context) {
	s.Resume()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	s.running.Stop(ctx)
}
