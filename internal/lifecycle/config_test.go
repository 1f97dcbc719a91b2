package lifecycle

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
)

// client-go obeys Retry-After of a load balancer while the API server is down. A program that
// sleeps for hours cannot decide anything.
func TestConfig_ARetryAfterIsHalfAMinuteAtMost(t *testing.T) {
	asked := ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", asked)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := "{clusters: [{name: a, cluster: {server: '" + server.URL + "'}}], contexts: [{name: a, context: {cluster: a}}], current-context: a}"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", file)
	config, err := Config()
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	for want, answers := range map[string][]string{
		"30": {"3600", "31"}, "5": {"5"}, "": {""}, "Fri, 27 Nov 2026 20:00:00 GMT": {"Fri, 27 Nov 2026 20:00:00 GMT"},
	} {
		for _, asked = range answers {
			response, err := client.Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if got := response.Header.Get("Retry-After"); got != want {
				t.Errorf("%q: %q, want %q", asked, got, want)
			}
		}
	}
}
