package hack

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
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
		"no answer":        {hangs(t), "too slow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tc.server)
			defer server.Close()
			file := filepath.Join(t.TempDir(), "kubectl")
			out, err := script(t, []string{"KUBE_MIRROR=" + server.URL}, "controlplane/download.sh", "v1.2.3", "kubectl", file)
			got, _ := os.ReadFile(file)
			switch {
			case tc.want == "" && (err != nil || string(got) != program):
				t.Errorf("%v: %s; the file has %q", err, out, got)
			case tc.want != "" && (err == nil || !strings.Contains(out, tc.want) || got != nil):
				t.Errorf("%v: %s, want %q; the file has %q", err, out, tc.want, got)
			}
		})
	}
}

// hangs never answers. Who asks gives up after three seconds; curl measures its speed once a second.
func hangs(t *testing.T) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began := time.Now()
		<-r.Context().Done()
		if waited := time.Since(began).Round(time.Second); waited > 5*time.Second {
			t.Errorf("it was waited for an answer for %s", waited)
		}
	})
}

// What cannot be downloaded is built. A go that only makes the files it is asked for says what that is.
func TestControlPlane_BuildsWhatItCannotDownload(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	folder := t.TempDir()
	stub := `#!/bin/sh
case $1 in
list) echo v1.2.3 ;;
env) echo linux ;;
build) for word; do [ "$last" != -o ] || touch "$word"; last=$word; done; echo "built $last" ;;
esac`
	if err := os.WriteFile(filepath.Join(folder, "go"), []byte(stub), 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"KUBE_MIRROR=" + server.URL, "PATH=" + folder + string(os.PathListSeparator) + os.Getenv("PATH")}
	out, err := script(t, env, "controlplane/build.sh", filepath.Join(folder, "out"))
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{
		"about a minute", "about six minutes", "built go.etcd.io/etcd/server/v3", "built k8s.io/kubernetes/cmd/kube-apiserver",
		"built k8s.io/kubernetes/cmd/kube-controller-manager", "built k8s.io/kubernetes/cmd/kube-scheduler", "built k8s.io/kubernetes/cmd/kubectl",
		"built sigs.k8s.io/kwok/cmd/kwok",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in %s", want, out)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "out", "versions")); err != nil {
		t.Error(err)
	}
}
