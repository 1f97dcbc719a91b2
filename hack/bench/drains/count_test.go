package drains

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
)

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
		request("somebody", "", "get", "pods", 200),
	}
	want := asked{lists: 1, watches: 2, gets: 1, evictions: 1, refused: 2, others: 2}
	got := count(requests, byAgentOf("n1"))
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(asked{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got.total() != 9 {
		t.Errorf("%d in all, want 9", got.total())
	}
	if got := count(requests, byUser("somebody")); got != (asked{gets: 1}) {
		t.Errorf("somebody asked %+v", got)
	}
}
