package hack

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// program is each of the release.
const program = "#!/bin/sh\necho kubectl\n"

// publish is a release in which each program has a checksum.
func publish(checksum string, body http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case !strings.HasPrefix(path, "/v1.2.3/bin/"+runtime.GOOS+"/"+runtime.GOARCH+"/kube"):
			http.NotFound(w, r)
		case strings.HasSuffix(path, ".sha256"):
			fmt.Fprint(w, checksum)
		default:
			body(w, r)
		}
	}
}

func whole(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, program) }

func rightSum() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(program))) }

func TestControlPlane_DownloadsWhatWasPublished(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(publish(rightSum(), whole))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubectl")
	out, err := script(t, []string{"KUBE_MIRROR=" + server.URL}, "controlplane/download.sh", "v1.2.3", "kubectl", file)
	if got, _ := os.ReadFile(file); err != nil || string(got) != program {
		t.Errorf("%v: %s; the file has %q", err, out, got)
	}
}

// A program of the release is used only where it is the one that was published; else the control plane is built. A go that only makes the
// files it is asked for says what that is.
func TestControlPlane_BuildsWhatItCannotDownload(t *testing.T) {
	t.Parallel()
	const stub = `#!/bin/sh
case $* in
list*) echo v1.2.3 ;;
"env GOOS") echo ` + runtime.GOOS + ` ;;
env*) echo ` + runtime.GOARCH + ` ;;
build*)
	while [ "$1" != -o ]; do shift; done
	out=$2
	shift 2
	for package; do touch "$out$(basename "${package%/v3}")"; echo "built $package"; done ;;
esac`
	wrong := strings.Repeat("0", 64)
	for name, tc := range map[string]struct {
		server http.HandlerFunc
		why    string
	}{
		"a wrong checksum": {publish(wrong, whole), "and " + wrong + " is published"},
		"no such program":  {http.NotFound, "404"},
		"no answer":        {func(_ http.ResponseWriter, r *http.Request) { hang(t, r, 5*time.Second) }, "too slow"},
		"a body that stalls": {publish(rightSum(), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(program)))
			fmt.Fprint(w, program[:len(program)/2])
			_ = http.NewResponseController(w).Flush()
			hang(t, r, 12*time.Second)
		}), "too slow"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tc.server)
			defer server.Close()
			folder := t.TempDir()
			must(t, os.WriteFile(filepath.Join(folder, "go"), []byte(stub), 0o700))
			env := []string{"KUBE_MIRROR=" + server.URL, "PATH=" + folder + string(os.PathListSeparator) + os.Getenv("PATH")}
			out, err := script(t, env, "controlplane/build.sh", filepath.Join(folder, "out"))
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, want := range []string{
				tc.why, "about six minutes", "built go.etcd.io/etcd/server/v3", "built k8s.io/kubernetes/cmd/kube-apiserver",
				"built k8s.io/kubernetes/cmd/kube-controller-manager", "built k8s.io/kubernetes/cmd/kube-scheduler", "built k8s.io/kubernetes/cmd/kubectl",
				"built sigs.k8s.io/kwok/cmd/kwok",
			} {
				if !strings.Contains(out, want) {
					t.Errorf("%q is missing in %s", want, out)
				}
			}
			files, err := filepath.Glob(filepath.Join(folder, "out", "*"))
			if all := "etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok versions"; err != nil || len(files) != len(strings.Fields(all)) {
				t.Errorf("%q (%v), want %s", files, err, all)
			}
			if got, err := os.ReadFile(filepath.Join(folder, "out", "kube-apiserver")); err != nil || len(got) > 0 {
				t.Errorf("what was downloaded is left: %q, %v", got, err)
			}
		})
	}
}

// hang never answers, and fails where the client does not give up in time.
func hang(t *testing.T, r *http.Request, limit time.Duration) {
	t.Helper()
	began := time.Now()
	<-r.Context().Done()
	if waited := time.Since(began); waited > limit {
		t.Errorf("it was waited for an answer for %s", waited)
	}
}
