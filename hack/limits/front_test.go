package limits

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/reboot-operator/reboot-operator/hack/chaos/wire"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// front is between one program and the API server, and can leave requests without an answer.
type front struct {
	*wire.Line
	URL  string
	held <-chan struct{}
}

// newFront passes everything on, as an administrator.
func newFront(t *testing.T) *front {
	t.Helper()
	transport, err := rest.TransportFor(env.Config)
	must(t, err)
	f := &front{Line: wire.New(transport).Line(t.Context())}
	f.URL, err = f.Serve(t.Context(), env.Config.Host)
	must(t, err)
	return f
}

// hold leaves requests unanswered from now on; watches that stand go on.
func (f *front) hold(which func(*http.Request) bool) { f.held = f.Keep(which) }

// waits is for the first request that is left without an answer.
func (f *front) waits(t *testing.T) {
	t.Helper()
	select {
	case <-f.held:
	case <-time.After(30 * time.Second):
		t.Fatal("nothing was asked that could be left without an answer")
	}
}

// everything is each request; request is those of a method to paths that end, or hold, what is given.
func everything(*http.Request) bool { return true }

func request(method, part string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == method && strings.Contains(r.URL.Path, part) }
}

func watch(resource string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+resource)
	}
}

// kubeconfig is a file that leads to an address.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, testenv.WriteKubeconfig(path, &rest.Config{Host: server}))
	return path
}
