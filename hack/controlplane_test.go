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

	"github.com/google/go-cmp/cmp"
)

// program is the content of each program of the release.
const program = "#!/bin/sh\necho kubectl\n"

// publish serves a release with a checksum for each program.
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

// Programs of a release must only be used if their checksum matches. Otherwise the control plane is
// built. A stub of go, which only creates the requested files, stands in for the build.
func TestControlPlane_DownloadsWhatWasPublishedAndBuildsTheRest(t *testing.T) {
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
	const (
		kubernetes = "k8s.io/kubernetes/cmd/"
		own        = "etcd and kwok are built from Go modules, once: about a minute"
		long       = "about six minutes"
	)
	wrong := strings.Repeat("0", 64)
	programs := []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl"}
	for name, tc := range map[string]struct {
		server     http.HandlerFunc
		downloaded int
		why        string
	}{
		"the release": {publish(rightSum(), whole), 4, own},
		"a release without kubectl": {func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "kubectl") {
				http.NotFound(w, r)
				return
			}
			publish(rightSum(), whole)(w, r)
		}, 3, "404"},
		"a wrong checksum":              {publish(wrong, whole), 0, "and " + wrong + " is published"},
		"a program that does not exist": {http.NotFound, 0, "404"},
		"no answer":                     {func(_ http.ResponseWriter, r *http.Request) { hang(t, r, 5*time.Second) }, 0, "too slow"},
		"a body that stalls": {publish(rightSum(), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", strconv.Itoa(len(program)))
			fmt.Fprint(w, program[:len(program)/2])
			_ = http.NewResponseController(w).Flush()
			hang(t, r, 12*time.Second)
		}), 0, "too slow"},
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
			if !strings.Contains(out, tc.why) || strings.Contains(out, long) == (tc.downloaded == len(programs)) {
				t.Errorf("%q is missing in %s, or how long it takes", tc.why, out)
			}
			want := []string{"go.etcd.io/etcd/server/v3", "sigs.k8s.io/kwok/cmd/kwok"}
			files := map[string]string{"etcd": "", "kwok": "", "versions": "kubernetes v1.2.3"}
			for i, name := range programs {
				if files[name] = program; i >= tc.downloaded {
					files[name] = ""
					want = append(want, kubernetes+name)
				}
			}
			var built []string
			for line := range strings.Lines(out) {
				if name, ok := strings.CutPrefix(line, "built "); ok {
					built = append(built, strings.TrimSpace(name))
				}
			}
			if diff := cmp.Diff(want, built); diff != "" {
				t.Errorf("-should be built +built:\n%s", diff)
			}
			entries, err := os.ReadDir(filepath.Join(folder, "out"))
			must(t, err)
			for _, entry := range entries {
				got, err := os.ReadFile(filepath.Join(folder, "out", entry.Name()))
				if want, ok := files[entry.Name()]; err != nil || !ok || !strings.HasPrefix(string(got), want) || want == "" && len(got) > 0 {
					t.Errorf("%s is %q (%v)", entry.Name(), got, err)
				}
			}
			if len(entries) != len(files) {
				t.Errorf("%v, want %v", entries, files)
			}
		})
	}
}

// hang never answers, and fails the test if the client does not give up in time.
func hang(t *testing.T, r *http.Request, limit time.Duration) {
	t.Helper()
	began := time.Now()
	<-r.Context().Done()
	if waited := time.Since(began); waited > limit {
		t.Errorf("it was waited for an answer for %s", waited)
	}
}
