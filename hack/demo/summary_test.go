package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

const staged = "rpm-ostree has staged version 42 (8fdcdc1f9af3); it runs after a reboot."

func ostree(nodes ...string) engine {
	return engine{nodes: nodes, Engine: fleet.Engine{
		Name: "rpm-ostree", Act: "rpm-ostree upgrade, which stages 42", Reports: []string{"version 42", "8fdcdc1f9af3"},
	}}
}

// silent returns an engine that no agent has reported.
func silent(nodes ...string) engine {
	return engine{nodes: nodes, Engine: fleet.Engine{Name: "sentinel", Act: "touch /run/reboot-required", Reports: []string{"exists"}}}
}

// happy returns a successful rollout of two nodes.
func happy() result {
	return result{
		took: 9900 * time.Millisecond, limit: 1, peak: []string{"node-2"},
		engines: []engine{ostree("node-1", "node-2")},
		views: []timeline.View{
			{Node: "node-1", State: timeline.Back, Reboots: 1, Report: staged}, {Node: "node-2", State: timeline.Back, Reboots: 1, Report: staged},
		},
	}
}

func TestSummary(t *testing.T) {
	broken := happy()
	broken.err = errTimeout
	broken.views = []timeline.View{{Node: "node-1", Reboots: 2, Cordoned: true, Report: staged}, {Node: "node-2"}, {Node: "node-3", Reboots: 1, Report: "version 42"}}
	broken.engines = []engine{ostree("node-1", "node-2"), silent("node-3")}
	broken.peak = []string{"node-1", "node-3"}
	for want, r := range map[string]result{
		`
  ✓ 2 of 2 agents detected rpm-ostree: rpm-ostree has staged version 42 (8fdcdc1f9af3); it runs after a reboot.
  ✓ 2 of 2 nodes were rebooted, each once
  ✓ never more than 1 out of service at a time, and the policy allows 1
  ✓ every node takes pods again
  9.9 s in all
`: happy(),
		`
  ✗ 1 of 2 agents detected rpm-ostree, but not node-2: rpm-ostree has staged version 42 (8fdcdc1f9af3); it runs after a reboot.
  ✗ 0 of 1 agents detected sentinel, but not node-3: no agent has named the update
  ✗ 1 of 3 nodes were rebooted, each once; never: node-2; more than once: node-1
  ✗ never more than 2 out of service at a time, and the policy allows 1: node-1, node-3
  ✗ every node takes pods again, but not node-1
  ✗ timed out
  9.9 s in all
`: broken,
	} {
		if diff := cmp.Diff(want, strings.Join(r.summary(terminal.Theme{}), "\n")); diff != "" || r.kept() == strings.Contains(want, "✗") {
			t.Errorf("kept: %t (-want +got):\n%s", r.kept(), diff)
		}
	}
}
