package limits

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// front is between one program and the API server, and can leave requests without an answer.
type front struct {
	*httptest.Server

	mu    sync.Mutex
	holds func(*http.Request) bool
	// held is closed when the first request is left without an answer.
	held chan struct{}
	once sync.Once
}

// newFront passes everything on, as an administrator.
func newFront(t *testing.T) *front {
	t.Helper()
	transport, err := rest.TransportFor(env.Config)
	must(t, err)
	target, err := url.Parse(env.Config.Host)
	must(t, err)
	proxy := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: transport, FlushInterval: -1,
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) {}, // the program has gone
	}
	f := &front{held: make(chan struct{})}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.keeps(r) {
			f.once.Do(func() { close(f.held) })
			_, _ = io.Copy(io.Discard, r.Body) // without which nobody notices that the program has gone
			<-r.Context().Done()
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

func (f *front) keeps(r *http.Request) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.holds != nil && f.holds(r)
}

// hold leaves requests unanswered from now on; watches that stand go on.
func (f *front) hold(which func(*http.Request) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.holds = which
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
	must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"front": {Server: server}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"front": {}},
		Contexts:       map[string]*clientcmdapi.Context{"front": {Cluster: "front", AuthInfo: "front"}},
		CurrentContext: "front",
	}, path))
	return path
}
