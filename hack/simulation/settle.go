package simulation

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

const (
	// calmAtMost is the maximum time from the end of the faults until all is well.
	calmAtMost = 3 * week
	// look is the polling interval.
	look = 10 * time.Minute
	// rest is the time for which all must stay well.
	rest = time.Hour
)

// settle ends the faults, waits until all is well and stays so, and returns what is not well in the
// end.
func (w *World) settle() (remaining []string) {
	w.calm.Store(true)
	for i := range w.script.Policies {
		strikes[ResumePolicy](injector{w}, Fault{Target: i})
		strikes[Enforce](injector{w}, Fault{Target: i})
	}
	for _, n := range w.script.Nodes {
		apiserver.Change(w.store, n.Name, judge.Admin, release)
	}
	well := time.Duration(0)
	for passed := time.Duration(0); passed < calmAtMost && well < rest; passed += look {
		for i := range w.script.Policies {
			strikes[EndHalt](injector{w}, Fault{Target: i}) // an administrator has looked at the failures
		}
		if !process.Wait(w.ctx, look) {
			break
		}
		if remaining = w.left(); len(remaining) > 0 {
			well = 0
			continue
		}
		well += look
	}
	return remaining
}

// release undoes what an administrator did to a node. Cordoned nodes use up the limit.
func release(node *corev1.Node) {
	resume(node)
	if cordonedBy(node, judge.Admin) {
		node.Spec.Unschedulable = false
	}
}

// left lists what is not well.
func (w *World) left() (remaining []string) {
	add := func(format string, args ...any) { remaining = append(remaining, fmt.Sprintf(format, args...)) }
	for _, h := range w.hosts {
		if _, count := apiserver.Read[*corev1.Node](w.store, h.name); !count && !h.IsScrapped() {
			add("host %s has no Node", h.name)
		}
		if problem := h.Unfinished(); problem != "" {
			add("host %s %s", h.name, problem)
		}
	}
	for _, node := range apiserver.ReadAll[*corev1.Node](w.store) {
		for _, problem := range judge.Unsettled(node) {
			add("node %s %s", node.Name, problem)
		}
	}
	policies := apiserver.ReadAll[*v1alpha1.RebootPolicy](w.store)
	if count, want := len(policies), len(w.script.Policies); count != want {
		add("there are %d policies of %d", count, want)
	}
	for _, policy := range policies {
		for _, problem := range judge.UnsettledPolicy(policy) {
			add("policy %s %s", policy.Name, problem)
		}
	}
	return remaining
}
