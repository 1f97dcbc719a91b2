package main

import (
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal/terminaltest"
)

var began = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return began.Add(time.Duration(seconds * float64(time.Second)))
}

const staged = "rpm-ostree has staged version 42 (8fdcdc1f9af3); it runs after a reboot."

func ostree(nodes ...string) engine {
	return engine{nodes: nodes, Engine: fleet.Engine{
		Name: "rpm-ostree", Act: "rpm-ostree upgrade, which stages 42", Reports: []string{"version 42", "8fdcdc1f9af3"},
	}}
}

// silent is an engine that no agent has reported.
func silent(nodes ...string) engine {
	return engine{nodes: nodes, Engine: fleet.Engine{Name: "sentinel", Act: "touch /run/reboot-required", Reports: []string{"exists"}}}
}

// happy is a rollout of two nodes that went well.
func happy() result {
	return result{
		began: began, ended: at(9.9), limit: 1, peak: []string{"node-2"},
		engines: []engine{ostree("node-1", "node-2")},
		views: []timeline.View{
			{Node: "node-1", State: timeline.Back, Reboots: 1, Report: staged}, {Node: "node-2", State: timeline.Back, Reboots: 1, Report: staged},
		},
		runs: []timeline.Run{
			{Node: "node-1", Needed: at(0), Granted: at(0.2), Drain: at(0.3), Reboot: at(1.5), Up: at(3.6), Done: at(4.7)},
			{Node: "node-2", Needed: at(0), Granted: at(4.8), Drain: at(4.9), Reboot: at(6.5), Up: at(8.6), Done: at(9.8)},
		},
		asked: fleet.Asked{
			Writes: []fleet.Line{
				{Program: "agent", Verb: "patch", Resource: "nodes/status", Count: 6},
				{Program: "manager", Verb: "update", Resource: "rebootpolicies/status", Count: 3},
			},
			Reads:     []fleet.Line{{Program: "agent", Verb: "list", Resource: "pods", Count: 2}},
			Evictions: 8, Events: 9,
		},
	}
}

func TestSummary(t *testing.T) {
	broken := happy()
	broken.err = errTimeout
	broken.views = []timeline.View{{Node: "node-1", Reboots: 2, Cordoned: true, Report: staged}, {Node: "node-2"}, {Node: "node-3", Reboots: 1, Report: "version 42"}}
	broken.engines = []engine{ostree("node-1", "node-2"), silent("node-3")}
	broken.peak = []string{"node-1", "node-3"}
	broken.runs = broken.runs[:1]
	cases := map[string]struct {
		result result
		color  bool
		kept   bool
	}{
		"summary":          {result: happy(), kept: true},
		"summary-terminal": {result: happy(), color: true, kept: true},
		"summary-broken":   {result: broken},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			terminaltest.Golden(t, name, tc.result.summary(terminal.Theme{Color: tc.color}))
			if tc.result.kept() != tc.kept {
				t.Errorf("kept is %t, want %t", tc.result.kept(), tc.kept)
			}
		})
	}
}

// Each broken promise alone makes the demo fail.
func TestResult_EachPromiseCounts(t *testing.T) {
	cases := map[string]func(*result){
		"a node never rebooted":        func(r *result) { r.views[1].Reboots = 0 },
		"a node rebooted twice":        func(r *result) { r.views[0].Reboots = 2 },
		"the limit was passed":         func(r *result) { r.peak = []string{"node-1", "node-2"} },
		"an agent detected no version": func(r *result) { r.views[0].Report = "a reboot is needed" },
		"somebody is left cordoned":    func(r *result) { r.views[0].Cordoned = true },
		"it did not end by itself":     func(r *result) { r.err = errTimeout },
	}
	for name, breaks := range cases {
		t.Run(name, func(t *testing.T) {
			r := happy()
			breaks(&r)
			if r.kept() {
				t.Error("all promises are reported to be kept")
			}
		})
	}
}
