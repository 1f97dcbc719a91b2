package fleet

import (
	"net/http"
	"testing"
	"time"
)

// expectRights fails where the operator's programs asked for what their roles do not allow, so that no role is too narrow;
// config's tests see that none is too wide.
func expectRights(t *testing.T, f *Fleet) {
	t.Helper()
	requests, err := f.Cluster.Requests(f.begun, time.Now())
	must(t, err)
	events := map[string]int{}
	for _, r := range requests {
		program := ProgramOf(r)
		if r.Resource == "events" {
			events[program]++
		}
		if program != "" && r.Code == http.StatusForbidden {
			t.Errorf("the %s may not %s %s %s/%s", program, r.Verb, r.Resource, r.Namespace, r.Name)
		}
	}
	if events[agentProgram] == 0 || events[managerProgram] == 0 {
		t.Errorf("events: %v; both programs write some", events)
	}
}
