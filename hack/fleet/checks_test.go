package fleet

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// check fails where the judge finds anything, and where no attempt was seen.
func check(t *testing.T, f *Fleet) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	must(t, f.Judge(ctx))
}

// expectRights fails if the operator's programs asked for what their roles do not allow, so that no role
// is too narrow, or for a deprecated kind. Config's tests see that no role is too wide.
func expectRights(t *testing.T, f *Fleet) {
	t.Helper()
	requests, err := f.Cluster.Requests(time.Time{}, time.Now())
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
		if program != "" && r.Deprecated {
			t.Errorf("the %s uses the deprecated %s", program, r.Resource)
		}
	}
	if events[agentProgram] == 0 || events[managerProgram] == 0 {
		t.Errorf("events: %v; both programs write some", events)
	}
}

const (
	// agentBytes is what the agent's program may have. Most of it is every kind of the Kubernetes API, which any client of
	// controller-runtime brings along. One more of that sort, such as a Clientset, is a megabyte on every node.
	agentBytes = 35_000_000
	// agentAtRest is what an agent may hold in memory when it has nothing to do. It takes 32 MiB, most of it pages of the program. The
	// kernel keeps more of them on one machine than on another.
	agentAtRest = 36 << 20
)

// checkWeight looks at the agent's program, and waits until the agents are at rest.
func checkWeight(t *testing.T, f *Fleet) {
	t.Helper()
	program, err := os.Stat(testenv.Shipped(agentProgram))
	must(t, err)
	if program.Size() > agentBytes {
		t.Errorf("the agent's program has %d bytes, at most %d are wanted: go list -deps ./agent reports what is new", program.Size(), agentBytes)
	}
	must(t, f.Await(t.Context(), "the agents to be at rest", func() bool {
		for _, agent := range f.Agents() {
			if m, err := agent.Memory(); err != nil || m.Resident > agentAtRest {
				return false
			}
		}
		return len(f.Agents()) == len(f.Hosts)
	}))
}
