package gate

import (
	"fmt"
	"testing"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Addresses come and go with edits of policies; what is kept for each does not pile up.
func TestPrometheus_ForgetsServers(t *testing.T) {
	p := &Prometheus{}
	for i := range 10 * most {
		if _, err := p.server(t.Context(), v1alpha1.PrometheusGate{URL: fmt.Sprintf("http://p%d.example.com", i)}); err != nil {
			t.Fatal(err)
		}
		if len(p.servers) > most {
			t.Fatalf("%d servers are remembered after %d", len(p.servers), i+1)
		}
	}
	last := v1alpha1.PrometheusGate{URL: fmt.Sprintf("http://p%d.example.com", 10*most-1)}
	first, err := p.server(t.Context(), last)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := p.server(t.Context(), last); again != first {
		t.Error("a server that is asked again is not kept")
	}
}
