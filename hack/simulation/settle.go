package simulation

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/reboot-operator/reboot-operator/api/protocol"
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
		w.endHalts()
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

// endHalts is an administrator who looks at failures and goes on.
func (w *World) endHalts() {
	for _, policy := range w.script.Policies {
		apiserver.Change(w.store, policy.Name, judge.Admin, endHalt)
	}
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
		for _, what := range unsettled(node) {
			add("node %s %s", node.Name, what)
		}
	}
	policies := apiserver.ReadAll[*v1alpha1.RebootPolicy](w.store)
	if there, want := len(policies), len(w.script.Policies); there != want {
		add("there are %d policies of %d", there, want)
	}
	for _, policy := range policies {
		if policy.DeletionTimestamp != nil || len(policy.Status.Grants) > 0 || halted(policy) {
			add("policy %s has grants %v, halted is %t, deleted at %v", policy.Name, policy.Status.Grants, halted(policy), policy.DeletionTimestamp)
		}
	}
	return left
}

// unsettled reports what a node shows that is not over.
func unsettled(node *corev1.Node) (what []string) {
	for _, left := range judge.Unfinished(node) {
		what = append(what, "is "+left)
	}
	for _, c := range node.Status.Conditions {
		switch {
		case c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue,
			c.Type == v1alpha1.NodeRebootRequired && c.Status != corev1.ConditionFalse,
			c.Type == v1alpha1.NodeRebootPermitted, c.Type == v1alpha1.NodeRebootFailed, c.Type == corev1.NodeMaintenanceInProgress && c.Status == corev1.ConditionTrue,
			c.Type == corev1.NodeMaintenancePlanned, c.Type == corev1.NodeDrainInProgress && c.Status == corev1.ConditionTrue:
			what = append(what, fmt.Sprintf("has %s=%s: %s %s", c.Type, c.Status, c.Reason, c.Message))
		}
	}
	if grant := node.Annotations[v1alpha1.AnnotationGrant]; outstanding(node) {
		what = append(what, "has grant "+grant)
	}
	for _, key := range []string{v1alpha1.AnnotationScaleDownDisabled, v1alpha1.AnnotationDoNotDisrupt, v1alpha1.AnnotationRebootRequested} {
		if _, there := node.Annotations[key]; there {
			what = append(what, "has annotation "+key)
		}
	}
	return what
}

// outstanding reports whether a grant may still be used, or nobody knows.
func outstanding(node *corev1.Node) bool {
	grant, err := protocol.ParseGrant(node.Annotations)
	if grant == nil || err != nil || grant.State != protocol.GrantActive {
		return err != nil
	}
	progress, err := protocol.ParseProgress(node.Annotations)
	aborted := err == nil && progress != nil && progress.Seq == grant.Seq && progress.Phase == protocol.PhaseAborted
	return !aborted
}

func halted(policy *v1alpha1.RebootPolicy) bool {
	return meta.IsStatusConditionTrue(policy.Status.Conditions, v1alpha1.ConditionHalted)
}
