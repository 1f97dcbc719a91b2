package hack

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// A program of the release is used only where it is the one that was published; else the control plane is built.
func TestControlPlane_DownloadsWhatWasPublished(t *testing.T) {
	t.Parallel()
	const program = "#!/bin/sh\necho kubectl\n"
	folder := "/v1.2.3/bin/" + runtime.GOOS + "/" + runtime.GOARCH + "/"
	published := func(checksum string) http.Handler {
		mux := http.NewServeMux()
		mux.HandleFunc(folder+"kubectl", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, program) })
		mux.HandleFunc(folder+"kubectl.sha256", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, checksum) })
		return mux
	}
	for name, tc := range map[string]struct {
		server http.Handler
		want   string // in the message; empty: it is downloaded
	}{
		"right":            {published(fmt.Sprintf("%x", sha256.Sum256([]byte(program)))), ""},
		"a wrong checksum": {published(strings.Repeat("0", 64)), "and " + strings.Repeat("0", 64) + " is published"},
		"no such program":  {http.NotFoundHandler(), "404"},
		"no answer":        {http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }), "too slow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tc.server)
			defer server.Close()
			file := filepath.Join(t.TempDir(), "kubectl")
			command := exec.CommandContext(t.Context(), filepath.Join(testenv.Root(), "hack", "controlplane", "download.sh"), "v1.2.3", "kubectl", file)
			command.Env = append(os.Environ(), "KUBE_MIRROR="+server.URL)
			began := time.Now()
			out, err := command.CombinedOutput()
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
			got, _ := os.ReadFile(file)
			switch {
			case tc.want == "" && (err != nil || string(got) != program):
				t.Errorf("%v: %s; the file has %q", err, out, got)
			case tc.want != "" && (err == nil || !strings.Contains(string(out), tc.want) || got != nil):
				t.Errorf("%v: %s, want %q; the file has %q", err, out, tc.want, got)
			}
		})
	}
}
