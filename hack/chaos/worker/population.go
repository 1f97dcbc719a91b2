package worker

import (
	"context"
	"fmt"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
)

// populate makes the machines, the pods, their budget and the policies, and starts the agents.
func (r *run) populate() error {
	if err := r.clocks.write(); err != nil {
		return err
	}
	for i := range schedule.Nodes {
		m, err := newMachine(r, i)
		if err != nil {
			return err
		}
		r.machines = append(r.machines, m)
		r.clocks.machines = r.machines
		m.register(r.ctx)
		m.start(r.ctx)
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": r.pods.name}}
	insist(r.ctx, func() error {
		return ignoreExists(r.worker.objects.Create(r.ctx, &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Name: r.pods.name, Namespace: metav1.NamespaceDefault},
			Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector, MinAvailable: new(intstr.FromInt(r.schedule.MinAvailable))},
		}))
	})
	for range r.schedule.Pods {
		r.pods.addPod()
	}
	for _, name := range r.admin.policies {
		r.admin.createPolicy(r.ctx, name, r.schedule.Limit)
	}
	return r.check()
}

// wipe removes everything that the schedule made, and returns when the witness has seen it go.
func (r *run) wipe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r.worker.world.begin(nil)
	now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
	for _, name := range r.admin.policies {
		insist(ctx, func() error { return r.admin.releasePolicy(ctx, name) })
	}
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
		insist(ctx, remove)
	}
	for empty := false; !empty; {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("wiping what a schedule left: %w", err)
		}
		r.worker.world.read(func(w *world) { empty = len(w.nodes) == 0 && len(w.pods) == 0 && len(w.policies) == 0 })
		if !empty {
			pause(ctx, look)
		}
	}
	return r.worker.Err()
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
