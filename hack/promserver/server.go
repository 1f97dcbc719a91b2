package promserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

// Server is a Prometheus that runs until its test ends.
type Server struct {
	// URL is where its HTTP API is, without a path.
	URL string
	// Log is the file with what it reports.
	Log string

	client  *http.Client
	running *process.Process
}

// Start starts a Prometheus with a configuration, the text of prometheus.yml, and waits until it answers queries.
// Relative paths in the configuration begin at dir; "" is a folder of the server's own.
func Start(t testing.TB, dir, config string) *Server {
	t.Helper()
	return StartSecured(t, dir, config, Security{})
}

// StartSecured is Start for a server that not everybody may ask.
func StartSecured(t testing.TB, dir, config string, security Security) *Server {
	t.Helper()
	program, data := Program(t, "prometheus"), t.TempDir()
	if dir == "" {
		dir = data
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(data, "tsdb")}
	if security.Web != "" {
		web := filepath.Join(data, "web.yml")
		args = append(args, "--web.config.file="+web)
		if err := os.WriteFile(web, []byte(security.Web), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	group := process.NewGroup(data)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		group.Stop(ctx)
	})
	port, err := embedded.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	running, err := group.Start(process.Program{Name: "prometheus", Path: program, Args: append(args, "--web.listen-address="+address)})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{URL: security.scheme() + "://" + address, Log: running.Log, client: cmp.Or(security.Client, http.DefaultClient), running: running}
	s.awaitReady(t)
	return s
}

// awaitReady returns once the server reports that it is ready, or does not know us.
func (s *Server) awaitReady(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for ctx.Err() == nil && s.running.Alive() {
		if status, _, err := s.get(ctx, "/-/ready"); err == nil && (status == http.StatusOK || status == http.StatusUnauthorized) {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	output, err := os.ReadFile(s.Log)
	t.Fatalf("Prometheus does not become ready. It shows (%v):\n%s", err, output)
}

// API asks an endpoint below /api/v1 and reads `data` of its answer. The error has Prometheus' own words.
func (s *Server) API(ctx context.Context, endpoint string, arguments url.Values, data any) error {
	_, body, err := s.get(ctx, "/api/v1/"+endpoint+"?"+arguments.Encode())
	if err != nil {
		return err
	}
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", endpoint, err)
	}
	if answer.Status != "success" {
		return fmt.Errorf("asking Prometheus for %s: %s", endpoint, answer.Error)
	}
	if err := json.Unmarshal(answer.Data, data); err != nil {
		return fmt.Errorf("reading the data of %s: %w", endpoint, err)
	}
	return nil
}
