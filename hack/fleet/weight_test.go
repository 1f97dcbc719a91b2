package fleet

import (
	"os"
	"testing"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

const (
	// agentBytes is what the agent's program may have. Most of it is every kind of the Kubernetes API, which any client of
	// controller-runtime brings along; one more of that sort, such as a Clientset, is a megabyte on every node.
	agentBytes = 36_000_000
	// agentAtRest is what an agent may hold in memory when it has nothing to do: it takes 32 MiB, most of it pages of the
	// program, of which the kernel keeps more on one machine than on another.
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
