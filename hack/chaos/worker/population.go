package worker

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

// populate creates the machines, the pods with their budget and the policies, and starts the
// agents.
func (r *run) populate() error {
	if err := r.setClocks(); err != nil {
		return err
	}
	for i := range schedule.Nodes {
		h, err := newHost(r, i)
		if err != nil {
			return err
		}
		r.hosts = append(r.hosts, h)
		h.register(r.ctx)
		h.start(r.ctx)
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": r.pods.name}}
	insist(r.ctx, func() error {
		return client.IgnoreAlreadyExists(r.worker.objects.Create(r.ctx, &policyv1.PodDisruptionBudget{
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

// wipe deletes everything that the schedule created, and waits until the witness has seen it.
func (r *run) wipe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r.worker.witness.Begin(func(judge.Change) {})
	for _, name := range r.admin.policies {
		insist(ctx, func() error { return r.admin.releasePolicy(ctx, name) })
	}
	for _, kind := range []client.Object{&corev1.Node{}, &corev1.Pod{}, &policyv1.PodDisruptionBudget{}} {
		insist(ctx, func() error {
			return r.worker.objects.DeleteAllOf(ctx, kind, client.InNamespace(metav1.NamespaceDefault), client.GracePeriodSeconds(0))
		})
	}
	for len(r.worker.witness.Present()) > 0 {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("wiping what a schedule left: %w", err)
		}
		pause(ctx, look)
	}
	return context.Cause(r.worker.life)
}
