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
	// calmAtMost is how long it may take at most until all is well after the faults.
	calmAtMost = 3 * week
	// look is how often somebody looks whether all is well.
	look = 10 * time.Minute
	// rest is how long it has to stay well.
	rest = time.Hour
)

// settle ends the faults and waits until all is well, and stays so. It returns what is not in the end.
func (w *World) settle() (left []string) {
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
			strikes[EndHalt](injector{w}, Fault{Target: i}) // an administrator looks at failures and goes on
		}
		if !process.Wait(w.ctx, look) {
			break
		}
		if left = w.left(); len(left) > 0 {
			well = 0
			continue
		}
		well += look
	}
	return left
}

// release ends what an administrator has done to a node. Nodes that are cordoned use up the limit for as long as they are.
func release(node *corev1.Node) {
	resume(node)
	if cordonedBy(node, judge.Admin) {
		node.Spec.Unschedulable = false
	}
}

// left reports what is not well.
func (w *World) left() (left []string) {
	add := func(format string, args ...any) { left = append(left, fmt.Sprintf(format, args...)) }
	for _, h := range w.hosts {
		if _, there := apiserver.Read[*corev1.Node](w.store, h.name); !there && !h.IsScrapped() {
			add("host %s has no Node", h.name)
		}
		if what := h.Unfinished(); what != "" {
			add("host %s %s", h.name, what)
		}
	}
	for _, node := range apiserver.ReadAll[*corev1.Node](w.store) {
		for _, what := range judge.Unsettled(node) {
			add("node %s %s", node.Name, what)
		}
	}
	policies := apiserver.ReadAll[*v1alpha1.RebootPolicy](w.store)
	if there, want := len(policies), len(w.script.Policies); there != want {
		add("there are %d policies of %d", there, want)
	}
	for _, policy := range policies {
		for _, what := range judge.UnsettledPolicy(policy) {
			add("policy %s %s", policy.Name, what)
		}
	}
	return left
}
