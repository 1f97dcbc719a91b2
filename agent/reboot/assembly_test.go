package reboot

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/drain"
)

func TestAssembly_Identities(t *testing.T) {
	config := &rest.Config{Host: "https://api", QPS: -1}
	for asNode, want := range map[bool]string{true: "system:node:n1", false: ""} {
		node, own := Assembly{Config: config, AsNode: asNode, Node: "n1"}.identities()
		if node.Impersonate.UserName != want || own.Impersonate.UserName != "" {
			t.Errorf("acts as %q on the Node and as %q else, want %q and itself", node.Impersonate.UserName, own.Impersonate.UserName, want)
		}
		if node.QPS != 5 || node.Burst != 10 || config.QPS != -1 {
			t.Errorf("limits %v, %v; the caller's config has %v", node.QPS, node.Burst, config.QPS)
		}
	}
}

// 250 pods are as many requests. At the agent's own limit they would take 48 seconds.
func TestNewDrainClient_EmptiesALargeNodeAtOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion":"v1","kind":"PodList"}`)
	}))
	defer server.Close()
	node, _ := Assembly{Config: &rest.Config{Host: server.URL}, Node: "n1"}.identities()
	client, err := newDrainClient(node)
	if err != nil {
		t.Fatal(err)
	}
	drainer, began := &drain.Drainer{Pods: client, Policy: client, Clock: clock.RealClock{}}, time.Now()
	for range 250 {
		if _, err := drainer.Look(t.Context(), "n1", drain.PodRules{}); err != nil {
			t.Fatal(err)
		}
	}
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("250 requests took %s", took)
	}
}
