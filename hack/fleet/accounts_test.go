package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
)

func TestAccount(t *testing.T) {
	const agent = "system:serviceaccount:reboot-operator-system:reboot-operator-agent"
	const manager = "system:serviceaccount:reboot-operator-system:reboot-operator-manager"
	requests := []embedded.Request{
		{User: agent, As: "system:node:node-1", Verb: "patch", Resource: "nodes/status", Code: 200},
		{User: agent, As: "system:node:node-2", Verb: "patch", Resource: "nodes/status", Code: 409},
		{User: manager, Verb: "update", Resource: "rebootpolicies/status", Code: 200},
		{User: agent, As: "system:node:node-1", Verb: "create", Resource: "pods/eviction", Code: 201},
		{User: agent, As: "system:node:node-1", Verb: "create", Resource: "pods/eviction", Code: 429},
		{User: agent, As: "system:node:node-1", Verb: "create", Resource: "events", Code: 201},
		{User: manager, Verb: "update", Resource: "leases", Code: 200},
		{User: manager, Verb: "get", Resource: "leases", Code: 200},
		{User: manager, Verb: "watch", Resource: "nodes", Code: 200},
		{User: manager, Verb: "get", Resource: "/api?timeout=32s", Code: 200},
		{User: agent, Verb: "get", Resource: "rebootpolicies", Code: 404},
		{User: "system:node:node-1", Verb: "patch", Resource: "nodes/status", Code: 200},
		{User: "admin", Verb: "create", Resource: "pods", Code: 201},
	}
	want := Asked{
		Writes: []Line{{"agent", "patch", "nodes/status", 2}, {"manager", "update", "rebootpolicies/status", 1}},
		Reads:  []Line{{"agent", "get", "rebootpolicies", 1}, {"manager", "get", "/api", 1}},
		// An eviction that a PodDisruptionBudget refuses is not an error. The conflict and the
		// missing policy are.
		Evictions: 2, Events: 1, Watches: 1, Leases: 2, Refused: 2,
	}
	got := Account(requests)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if work := got.Work(); work != 8 {
		t.Errorf("%d requests without watches and Leases, want 8", work)
	}
}
