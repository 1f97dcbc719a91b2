package worker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

// This file has the plays with pods whose budgets are closed, or that come back.

const (
	// heldFor is the time for which an inhibitor is held on a drained node, so that the judge counts
	// the pods that came back to it.
	heldFor = 14 * time.Second
	// longDrain is longer than drain.timeout. It is a number of whole days, so that windows stay
	// open.
	longDrain = 48 * time.Hour
)

// guard creates pods on the Node, and a budget that requires one of them. open opens the budget.
func (s stage) guard(pods int) (w *workload, open func()) {
	s.mu.Lock()
	w = s.newWorkload(fmt.Sprintf("%s-guarded-%d", s.pods.name, len(s.guarded)))
	s.guarded = append(s.guarded, w)
	s.mu.Unlock()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: w.name, Namespace: metav1.NamespaceDefault},
		Spec: policyv1.PodDisruptionBudgetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": w.name}}, MinAvailable: new(intstr.FromInt32(1)),
		},
	}
	insist(s.ctx, func() error { return client.IgnoreAlreadyExists(s.worker.objects.Create(s.ctx, budget)) })
	for range pods {
		w.addPodTo(s.name)
	}
	for s.ctx.Err() == nil && !s.isCounted(w.name, pods) {
		pause(s.ctx, look)
	}
	return w, func() {
		insist(s.ctx, func() error {
			none := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"minAvailable":0}}`))
			return client.IgnoreNotFound(s.worker.objects.Patch(s.ctx, budget.DeepCopy(), none))
		})
	}
}

// isCounted reports whether the status of a budget counts the given number of pods.
func (s stage) isCounted(budget string, pods int) bool {
	return slices.ContainsFunc(s.worker.witness.Present(), func(c judge.Change) bool {
		return c.Budget != nil && c.Name == budget && int(c.Budget.Status.CurrentHealthy) == pods
	})
}

// budgetOpensLate plays Longhorn and CloudNativePG, which open a budget once its node is cordoned.
func (i injector) budgetOpensLate(step schedule.Step) bool {
	s, ok := i.idle(step.Target)
	if !ok {
		return false
	}
	defer s.leave()
	_, open := s.guard(1)
	defer open()
	s.host.Stage()
	return s.await(func(node *corev1.Node) bool { return node.Spec.Unschedulable })
}

// budgetNeverOpens keeps a budget closed until the drain timed out and the node was given up.
func (i injector) budgetNeverOpens(step schedule.Step) bool {
	s, ok := i.idle(step.Target)
	if !ok {
		return false
	}
	defer s.leave()
	_, open := s.guard(1)
	defer open()
	s.host.Stage()
	next := time.Now()
	return s.await(func(node *corev1.Node) bool {
		if isDraining(node) && time.Now().After(next) {
			next = time.Now().Add(calm)
			s.wrong.Add(int64(longDrain))
			s.fail(s.setClocks())
		}
		return progressOf(node).FailedTry() && !node.Spec.Unschedulable
	})
}

// evictionDenied plays KubeVirt: the budget is closed, and a webhook denies the eviction and has the
// pod moved.
func (i injector) evictionDenied(step schedule.Step) bool {
	s, ok := i.idle(step.Target)
	if !ok {
		return false
	}
	defer s.leave()
	w, open := s.guard(1)
	defer open()
	i.worker.faults.Deny(func(pod string) bool { return strings.HasPrefix(pod, w.name+"-") })
	defer i.worker.faults.Deny(nil)
	s.host.Stage()
	if !s.await(isDraining) {
		return false
	}
	pause(i.ctx, step.For)
	w.leaveNode(s.name)
	return s.await(func(node *corev1.Node) bool { return progressOf(node).Phase == protocol.PhaseRebooting })
}

// podsComeBack makes two pods come back to their node during its drain. Their budget allows one
// disruption. An inhibitor is held until the judge counts the pods.
func (i injector) podsComeBack(step schedule.Step) bool {
	s, ok := i.idle(step.Target)
	if !ok {
		return false
	}
	defer s.leave()
	w, open := s.guard(2)
	defer open()
	w.comeBack.Store(true)
	defer w.comeBack.Store(false)
	s.host.Stage()
	if !s.await(isDraining) {
		return false
	}
	s.host.Inhibit(true) // before it, that keeps a node from being granted
	defer s.host.Inhibit(false)
	if !s.await(func(*corev1.Node) bool { return w.replaced() >= 2 }) {
		return false
	}
	pause(i.ctx, heldFor)
	s.host.Inhibit(false)
	pause(i.ctx, 3*time.Second)
	return true
}
