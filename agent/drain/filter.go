package drain

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// PodRules holds the rules of a policy for the pods of a node.
type PodRules struct {
	// Drain says which pods must leave, and how.
	Drain v1alpha1.Drain
	// Blocking selects the pods that must not be disrupted. Nil selects none.
	Blocking []v1alpha1.BlockingPod
	// Refused reports whether a check also finds the pods whose budget allows no eviction now.
	Refused bool
}

// decision says what happens to one pod.
type decision struct {
	// action says how the pod leaves. With DrainSkip it stays, and the drain does not wait for it.
	action v1alpha1.DrainAction
	// order sorts the pods. Lower ones leave first.
	order int32
	// gracePeriod is the grace period of the request in seconds, or 0 for the pod's own.
	gracePeriod int64
	// undrainable says why the policy never removes the pod. It is empty if it does.
	undrainable string
}

// filter decides about pods under the rules of one policy.
type filter struct {
	self       types.NamespacedName
	graceCap   *int64
	rules      []rule
	unmanaged  v1alpha1.PodDisposal
	emptyDir   v1alpha1.PodDisposal
	namespaces bool
	// blocking selects the pods that must not be disrupted.
	blocking []rule
}

type rule struct {
	pods       labels.Selector
	namespaces labels.Selector
	action     v1alpha1.DrainAction
	order      int32
	graceCap   *int64
}

// compile returns the filter for the rules. It fails for a selector that admission should have
// refused.
func compile(q PodRules, self types.NamespacedName) (filter, error) {
	spec := q.Drain
	f := filter{
		self:      self,
		graceCap:  seconds(spec.GracePeriod),
		unmanaged: spec.UnmanagedPodsOrDefault(),
		emptyDir:  spec.EmptyDirDataOrDefault(),
	}
	for i, r := range spec.Rules {
		c, err := compileRule(r, f.graceCap)
		if err != nil {
			return filter{}, fmt.Errorf("reading drain rule %d: %w", i, err)
		}
		f.rules = append(f.rules, c)
		f.namespaces = f.namespaces || !c.namespaces.Empty()
	}
	for i, b := range q.Blocking {
		c, err := compileRule(v1alpha1.DrainRule{PodSelector: b.PodSelector, NamespaceSelector: b.NamespaceSelector}, nil)
		if err != nil {
			return filter{}, fmt.Errorf("reading gates.blockingPods[%d]: %w", i, err)
		}
		f.blocking = append(f.blocking, c)
		f.namespaces = f.namespaces || !c.namespaces.Empty()
	}
	return f, nil
}

// blocks reports whether the pod must not be disrupted. It may be of any kind, and may be disrupted
// once it has completed.
func (f filter) blocks(pod *corev1.Pod, namespace labels.Set) bool {
	return !completed(pod) && slices.ContainsFunc(f.blocking, func(r rule) bool { return r.selects(pod, namespace) })
}

func (r rule) selects(pod *corev1.Pod, namespace labels.Set) bool {
	return r.pods.Matches(labels.Set(pod.Labels)) && r.namespaces.Matches(namespace)
}

func compileRule(r v1alpha1.DrainRule, fallback *int64) (rule, error) {
	pods, err := r.PodSelector.Selector()
	if err != nil {
		return rule{}, fmt.Errorf("reading podSelector: %w", err)
	}
	namespaces, err := r.NamespaceSelector.Selector()
	if err != nil {
		return rule{}, fmt.Errorf("reading namespaceSelector: %w", err)
	}
	graceCap := cmp.Or(seconds(r.GracePeriod), fallback)
	return rule{pods: pods, namespaces: namespaces, action: r.ActionOrDefault(), order: r.Order, graceCap: graceCap}, nil
}

// seconds returns a duration in whole seconds, rounded up, because grace periods have whole
// seconds.
func seconds(d *v1alpha1.Duration) *int64 {
	if d == nil {
		return nil
	}
	return new(int64((d.Duration + time.Second - 1) / time.Second))
}

// decide decides what happens to a pod. The labels of its namespace only matter if f.namespaces is
// set.
func (f filter) decide(pod *corev1.Pod, namespace labels.Set) decision {
	if f.stays(pod) {
		return decision{action: v1alpha1.DrainSkip}
	}
	r := f.match(pod, namespace)
	d := decision{action: r.action, order: r.order}
	if d.action == v1alpha1.DrainSkip || d.action == v1alpha1.DrainWaitCompleted {
		return d
	}
	if pod.DeletionTimestamp != nil {
		// The pod is already terminating, so only a shorter grace period can be requested. A pod
		// that the policy never removes keeps its grace period.
		if own := pod.DeletionGracePeriodSeconds; own != nil && *own > 0 && capped(own, r.graceCap) < *own && f.whyKept(pod) == "" {
			d.gracePeriod = capped(own, r.graceCap)
		}
		return d
	}
	d.gracePeriod = capped(pod.Spec.TerminationGracePeriodSeconds, r.graceCap)
	d.undrainable = f.whyKept(pod)
	return d
}

// stays reports whether the pod is left alone under any rules. It does not look up owners, because
// an unreadable owner must not change the result. A pod whose DaemonSet is gone stays, too
// (behaviours 37, 40, 41).
func (f filter) stays(pod *corev1.Pod) bool {
	if pod.Namespace == f.self.Namespace && pod.Name == f.self.Name {
		return true
	}
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	if completed(pod) {
		return true
	}
	// DaemonSets of any API group count, because those that extend the built-in one put their pods
	// back on a cordoned node as well.
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind == "DaemonSet"
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// toleratesCordon reports whether the scheduler places the pod on cordoned nodes, too.
func toleratesCordon(pod *corev1.Pod) bool {
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(logr.Discard(), &cordon, false)
	})
}

func completed(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// match returns the first rule that selects the pod, or the default rule.
func (f filter) match(pod *corev1.Pod, namespace labels.Set) rule {
	for _, r := range f.rules {
		if r.selects(pod, namespace) {
			return r
		}
	}
	return rule{action: v1alpha1.DrainEvict, graceCap: f.graceCap}
}

// whyKept says why the policy never removes the pod, and is empty if it does. It also applies to
// rules with action Delete, which ignore a PodDisruptionBudget but still protect data.
func (f filter) whyKept(pod *corev1.Pod) string {
	if f.unmanaged == v1alpha1.PodDisposalBlock && metav1.GetControllerOfNoCopy(pod) == nil {
		return "no controller would create it again, and drain.unmanagedPods is Block"
	}
	if f.emptyDir != v1alpha1.PodDisposalBlock {
		return ""
	}
	for _, v := range pod.Spec.Volumes {
		if v.EmptyDir != nil {
			return fmt.Sprintf("the data in its emptyDir volume %q would be lost, and drain.emptyDirData is Block", v.Name)
		}
	}
	return ""
}

// capped returns the grace period to request in seconds, or 0 for the pod's own. It is never a
// request for 0 seconds, because the API server would then remove the pod at once while its
// processes still run, and a StatefulSet would start it twice.
func capped(own, limit *int64) int64 {
	if limit == nil {
		return 0
	}
	if own == nil {
		return max(1, *limit)
	}
	return max(1, min(*own, *limit))
}
