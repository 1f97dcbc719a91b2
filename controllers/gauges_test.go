package controllers

import (
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// A scrape in the middle of a pass finds the series of one plan, whole. Otherwise an alert about blocked nodes would begin to wait anew.
func TestGauges_ChangeAtOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := NewMetrics(registry)
	policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: "workers"}}
	reasons := [...]v1alpha1.Reason{v1alpha1.ReasonWindowClosed, v1alpha1.ReasonPaused}
	observe := func(pass int) {
		m.observe(policy, plan.Plan{Blocked: []v1alpha1.BlockedNodes{{Reason: reasons[pass%2], Count: 1}}}, window.State{})
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
