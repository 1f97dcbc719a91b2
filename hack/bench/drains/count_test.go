package drains

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
)

const agents = "system:serviceaccount:reboot-operator-system:reboot-operator-agent"

func request(user, as, verb, resource string, code int) embedded.Request {
	return embedded.Request{User: user, As: as, Verb: verb, Resource: resource, Code: code}
}

func TestCount_DistinguishesAcceptedEvictionsFromRefusedOnes(t *testing.T) {
	requests := []embedded.Request{
		request(agents, "system:node:n1", "list", "pods", 200),
		request(agents, "system:node:n1", "watch", "pods", 200),
		request(agents, "", "watch", "poddisruptionbudgets", 200),
		request(agents, "", "get", "rebootpolicies", 200),
		request(agents, "system:node:n1", "create", "pods/eviction", 201),
		request(agents, "system:node:n1", "create", "pods/eviction", 429),
		request(agents, "system:node:n1", "create", "pods/eviction", 429),
		request(agents, "system:node:n1", "create", "pods/eviction", 404),
		request(agents, "system:node:n1", "patch", "nodes/status", 200),
		request(agents, "system:node:n2", "get", "nodes", 200),
		request("another", "", "get", "pods", 200),
	}
	want := map[string]int{"list": 1, "watch": 2, "get": 1, "evictions": 1, "refused": 2, "other": 2, "all": 9}
	if diff := cmp.Diff(want, count(requests, byAgentOf("n1"))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
