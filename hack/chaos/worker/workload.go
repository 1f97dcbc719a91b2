package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
)

const (
	// tooMany failures to halt after.
	tooMany = 1000
	// confirmation is how long after a pod's end its kubelet removes it, where that has not happened.
	confirmation = 300 * time.Millisecond
)

// populate makes the machines, the pods, their budget and the policy, and starts the agents.
func (r *run) populate() error {
	if err := r.setClocks(); err != nil {
		return err
	}
	for i := range schedule.Nodes {
		m, err := newMachine(r, i)
		if err != nil {
			return err
		}
		r.machines = append(r.machines, m)
		m.register(r.ctx)
		m.start(r.ctx)
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": r.policy}}
	r.insist(r.ctx, func() error {
		return ignoreExists(r.worker.objects.Create(r.ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: r.policy, Namespace: metav1.NamespaceDefault},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector, MinAvailable: new(intstr.FromInt(r.schedule.MinAvailable))},
		}))
	})
	for range r.schedule.Pods {
		r.addPod()
	}
	r.createPolicy(r.schedule.Limit)
	return r.check()
}

// createPolicy insists on a new policy, whoever is still in the way.
func (r *run) createPolicy(limit int) {
	r.insist(r.ctx, func() error { return ignoreExists(r.worker.objects.Create(r.ctx, r.newPolicy(limit))) })
}

func (r *run) newPolicy(limit int) *v1alpha1.RebootPolicy {
	week := &metav1.Duration{Duration: 168 * time.Hour}
	policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: r.policy}, Spec: v1alpha1.RebootPolicySpec{
		Concurrency: &v1alpha1.Concurrency{MaxUnavailable: new(intstr.FromInt(limit))},
		Settle:      &metav1.Duration{},
		Drain:       &v1alpha1.Drain{Timeout: &metav1.Duration{Duration: 24 * time.Hour}},
		Reboot:      &v1alpha1.Reboot{Timeout: week},
		Failures:    &v1alpha1.Failures{Max: new(int32(tooMany))},
	}}
	if w := r.schedule.Window; w != nil {
		policy.Spec.Windows = []v1alpha1.Window{{Name: "night", Start: w.Start, Duration: metav1.Duration{Duration: w.Duration}, TimeZone: w.Zone}}
	}
	return policy
}

// addPod does what a ReplicaSet, the scheduler and a kubelet do: a pod on any node that takes it, which is Ready at once.
func (r *run) addPod() {
	r.mu.Lock()
	r.created++
	name := fmt.Sprintf("%s-%d", r.policy, r.created)
	r.mu.Unlock()
	r.insist(r.ctx, func() error {
		nodes := r.worker.world.schedulable()
		if len(nodes) == 0 {
			return errNowhere
		}
		now := int64(0)
		_, err := r.worker.api.CoreV1().Pods(metav1.NamespaceDefault).Create(r.ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{"app": r.policy},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: r.policy, UID: "chaos", Controller: new(true)}},
			},
			Spec: corev1.PodSpec{
				NodeName: nodes[rand.IntN(len(nodes))], TerminationGracePeriodSeconds: &now,
				AutomountServiceAccountToken: new(false),
				Containers:                   []corev1.Container{{Name: "app", Image: "app"}},
				Tolerations:                  []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			},
		}, metav1.CreateOptions{})
		return ignoreExists(err)
	})
	status, err := json.Marshal(map[string]any{"status": corev1.PodStatus{
		Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}})
	if err != nil {
		r.fail(err)
	}
	r.insist(r.ctx, func() error {
		_, err := r.worker.api.CoreV1().Pods(metav1.NamespaceDefault).Patch(r.ctx, name, types.StrategicMergePatchType, status, metav1.PatchOptions{}, "status")
		return client.IgnoreNotFound(err) // it may have been evicted already
	})
}

// podSeen does what controllers and kubelets do: a pod that is gone is replaced, and one that is still there while its grace
// period is over is removed, because the API server went away between the two writes of its end.
func (r *run) podSeen(pod *corev1.Pod, deleted bool) {
	switch {
	case pod.Labels["app"] != r.policy || r.ctx.Err() != nil:
	case deleted:
		r.agents.Go(r.addPod)
	case pod.DeletionTimestamp != nil:
		r.agents.Go(func() {
			pause(r.ctx, confirmation)
			r.insist(r.ctx, func() error { return r.deletePod(pod) })
		})
	}
}

// wipe removes everything that the schedule made, and returns when the witness has seen it go.
func (r *run) wipe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r.worker.world.begin(nil)
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	r.insist(ctx, func() error { return r.releasePolicy(ctx) })
	for _, remove := range []func() error{
		func() error {
			return r.worker.api.CoreV1().Nodes().DeleteCollection(ctx, now, metav1.ListOptions{})
		},
		func() error {
			return r.worker.api.CoreV1().Pods(metav1.NamespaceDefault).DeleteCollection(ctx, now, metav1.ListOptions{})
		},
		func() error {
			return r.worker.api.PolicyV1().PodDisruptionBudgets(metav1.NamespaceDefault).DeleteCollection(ctx, now, metav1.ListOptions{})
		},
	} {
		r.insist(ctx, remove)
	}
	for empty := false; !empty; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("wiping what a schedule left: %w", err)
		}
		r.worker.world.read(func(w *world) { empty = len(w.nodes) == 0 && len(w.pods) == 0 && w.policy == nil })
		if !empty {
			pause(ctx, look)
		}
	}
	return r.worker.Err()
}

// releasePolicy deletes the policy, and its finalizer with it.
func (r *run) releasePolicy(ctx context.Context) error {
	policy := &v1alpha1.RebootPolicy{}
	if err := r.worker.objects.Get(ctx, client.ObjectKey{Name: r.policy}, policy); err != nil {
		return client.IgnoreNotFound(err)
	}
	if policy.DeletionTimestamp == nil {
		if err := client.IgnoreNotFound(r.worker.objects.Delete(ctx, policy)); err != nil {
			return err
		}
	}
	policy.Finalizers = nil
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	return client.IgnoreNotFound(r.worker.objects.Patch(ctx, policy, patch))
}

// removePods removes the pods of a machine that is gone, as the garbage collector of pods does.
func (r *run) removePods(node string) {
	var pods []*corev1.Pod
	r.worker.world.read(func(w *world) {
		for _, pod := range w.pods {
			if pod.Spec.NodeName == node {
				pods = append(pods, pod)
			}
		}
	})
	for _, pod := range pods {
		r.mu.Lock()
		r.removed[string(pod.UID)] = true
		r.mu.Unlock()
		r.insist(r.ctx, func() error { return r.deletePod(pod) })
	}
}

// deletePod removes a pod for good; one that is gone already is what is wanted.
func (r *run) deletePod(pod *corev1.Pod) error {
	err := r.worker.api.CoreV1().Pods(pod.Namespace).Delete(r.ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if apierrors.IsConflict(err) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
