package limits

import (
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

// front is between one program and the API server, and can leave requests without an answer.
type front struct {
	wire wire.Wire
	URL  string

	t *testing.T
}

// newFront passes everything on, as an administrator.
func newFront(t *testing.T) *front {
	t.Helper()
	transport, err := rest.TransportFor(env.Config())
	must(t, err)
	f := &front{t: t}
	f.URL, err = f.wire.Serve(t.Context(), env.Config().Host, transport)
	must(t, err)
	return f
}

// hangs leaves requests unanswered from now on, does something, and returns once such a request has been sent. Watches that stand
// go on.
func (f *front) hangs(which func(*http.Request) bool, after func()) {
	f.t.Helper()
	sent := make(chan struct{})
	once := sync.OnceFunc(func() { close(sent) })
	f.wire.Meddle(which, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		once()
		return wire.Hang(r, next)
	})
	after()
	select {
	case <-sent:
	case <-time.After(30 * time.Second):
		f.t.Fatal("nothing was asked that could be left without an answer")
	}
}

// nothing is done where a program asks by itself.
func nothing() {}

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

// mute accepts connections and reports nothing; connected is closed with the first one.
func mute(t *testing.T, network, address string) (at string, connected <-chan struct{}) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	must(t, err)
	first := make(chan struct{})
	go func() {
		once := sync.OnceFunc(func() { close(first) })
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			once()
			defer func() { _ = conn.Close() }()
		}
	}()
	t.Cleanup(func() { must(t, listener.Close()) })
	return listener.Addr().String(), first
}
