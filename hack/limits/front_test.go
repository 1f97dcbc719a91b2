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

// front is a proxy between one program and the API server that can leave requests unanswered.
type front struct {
	wire wire.Wire
	URL  string

	t *testing.T
}

// newFront returns a proxy that forwards everything as an administrator.
func newFront(t *testing.T) *front {
	t.Helper()
	transport, err := rest.TransportFor(env.Config())
	must(t, err)
	f := &front{t: t}
	f.URL, err = f.wire.Serve(t.Context(), env.Config().Host, transport)
	must(t, err)
	return f
}

// hangs leaves requests unanswered from now on, calls after, and waits for such a request. Open
// watches continue.
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

// nothing is for programs that send requests by themselves.
func nothing() {}

// everything matches every request. request matches those with a method and with paths that end in,
// or contain, a text.
func everything(*http.Request) bool { return true }

func request(method, part string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == method && strings.Contains(r.URL.Path, part) }
}

func watch(resource string) func(*http.Request) bool {
	return func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+resource)
	}
}

// kubeconfig writes a kubeconfig for an address.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, testenv.WriteKubeconfig(path, &rest.Config{Host: server}))
	return path
}

// mute accepts connections and answers nothing. connected is closed with the first one.
func mute(t *testing.T, network, address string) (url string, connected <-chan struct{}) {
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
