package fleet

import (
	"context"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// check fails if the judge finds a violation, or if nothing was rebooted.
func check(t *testing.T, f *Fleet) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	must(t, f.Judge(ctx))
}

// expectRights fails if a request of the operator was forbidden, because a role is too narrow, or
// used a deprecated kind. The tests of config check that no role is too wide.
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
	// agentBytes is the maximum size of the agent's program. Most of it are the kinds of the
	// Kubernetes API, which its clients include.
	agentBytes = 35_000_000
	// agentAtRest is the maximum memory of an idle agent. It takes 33 MiB, which are mostly pages
	// of the program. The kernel keeps more of them on some machines.
	agentAtRest = 36 << 20
)

// checkWeight checks the size of the agent's program and the memory of idle agents.
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
