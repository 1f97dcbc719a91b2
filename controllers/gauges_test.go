package controllers

import (
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/halt"
	"github.com/reboot-operator/reboot-operator/controllers/plan/report"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// The series are those of the last plan. What the next plan does not report is gone.
func TestGauges_AreThoseOfTheLastPlan(t *testing.T) {
	a, _, s := announcing(t)
	gauges := func() map[string]map[string]float64 {
		found := map[string]map[string]float64{}
		for name, by := range map[string]string{
			"nodes": "state", "blocked_nodes": "reason", "gate_up": "gate", "run_hooks_waiting": "stage", "limit": "policy", "halted": "policy",
			"window_open": "policy", "window_next_transition_timestamp_seconds": "policy",
		} {
			if values := a.measured(t, name, by); len(values) > 0 {
				found[name] = values
			}
		}
		return found
	}
	shown := plan.Report{
		Counts: v1alpha1.NodeCounts{Selected: 9, Reporting: 8, RebootRequired: 7, Granted: 6, Rebooting: 5, Blocked: 4, Unavailable: 3, Failed: 2},
		Agents: &report.AgentsHealth{AgentsStatus: v1alpha1.AgentsStatus{Missing: 1}}, Deadlines: &report.DeadlinesHealth{Near: 2, Passed: 1},
		Blocked: []v1alpha1.BlockedNodes{{Reason: v1alpha1.ReasonPaused, Count: 4}}, RunWaits: "backup",
	}
	a.metrics.observe(s.Policy, plan.Plan{
		Report: shown, Limit: 2, Halt: halt.State{Halted: true}, RunHooks: &v1alpha1.RunHooks{Stage: v1alpha1.RunBefore},
		Gates: []v1alpha1.GateStatus{{Name: "budget", State: v1alpha1.GateFiring}, {Name: "down", State: v1alpha1.GateUnreachable}},
	}, window.State{Open: true, Next: time.Unix(30, 0), ClosesAt: time.Unix(60, 0)}) // its name changes before it closes
	all := map[string]map[string]float64{
		"nodes": {
			"selected": 9, "reporting": 8, "reboot_required": 7, "granted": 6, "rebooting": 5, "blocked": 4, "unavailable": 3, "failed": 2,
			"agent_missing": 1, "deadline_near": 2, "deadline_passed": 1,
		},
		"blocked_nodes": {"Paused": 4}, "gate_up": {"budget": 1}, "run_hooks_waiting": {"Before": 1},
		"limit": {t.Name(): 2}, "halted": {t.Name(): 1}, "window_open": {t.Name(): 1}, "window_next_transition_timestamp_seconds": {t.Name(): 60},
	}
	if diff := cmp.Diff(all, gauges()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	a.metrics.observe(s.Policy, plan.Plan{}, window.State{Next: time.Unix(30, 0), OpensAt: time.Unix(90, 0)})
	if diff := cmp.Diff(map[string]map[string]float64{"window_next_transition_timestamp_seconds": {t.Name(): 90}}, gauges()); diff != "" {
		t.Errorf("of a window that is closed (-want +got):\n%s", diff)
	}
	a.metrics.observe(s.Policy, plan.Plan{}, window.State{})
	if diff := cmp.Diff(map[string]map[string]float64{}, gauges()); diff != "" {
		t.Errorf("after a plan that reports nothing (-want +got):\n%s", diff)
	}
}

// A scrape during a pass sees all series of one plan. Otherwise an alert about blocked nodes would
// start to wait again.
func TestGauges_ChangeAtOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}
	reasons := [...]v1alpha1.Reason{v1alpha1.ReasonWindowClosed, v1alpha1.ReasonPaused}
	observe := func(pass int) {
		m.observe(policy, plan.Plan{Report: plan.Report{Blocked: []v1alpha1.BlockedNodes{{Reason: reasons[pass%2], Count: 1}}}}, window.State{})
	}
	observe(0)
	var passes sync.WaitGroup
	passes.Go(func() {
		for pass := range 5_000 {
			observe(pass)
		}
	})
	for range 500 {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		for _, family := range families {
			if family.GetName() == prefix+"blocked_nodes" {
				found = len(family.GetMetric())
			}
		}
		if found != 1 {
			t.Errorf("a scrape found %d reasons, each plan has one", found)
		}
	}
	passes.Wait()
}
