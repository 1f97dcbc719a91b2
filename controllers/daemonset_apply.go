package controllers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/agentset"
)

// applied is one write of the DaemonSet, and what came of it. Any change of the spec since, by anybody, has another
// generation.
type applied struct {
	configuration []byte
	uid           types.UID
	generation    int64
}

// stands tells whether the DaemonSet still is what this write made of it.
func (a applied) stands(set *appsv1.DaemonSet, configuration []byte, labels map[string]string) bool {
	if set == nil || set.UID != a.uid || set.Generation != a.generation || !bytes.Equal(configuration, a.configuration) {
		return false
	}
	for key, value := range labels { // they have no generation
		if set.Labels[key] != value {
			return false
		}
	}
	return true
}

// apply does what was decided about the DaemonSet as it was read; nil: there is none.
func (r *DaemonSetReconciler) apply(ctx context.Context, step agentset.Step, set *appsv1.DaemonSet) error {
	switch {
	case step.Delete:
		return r.remove(ctx, set)
	case step.Apply != nil:
		return r.write(ctx, step.Apply, set)
	}
	return nil
}

func (r *DaemonSetReconciler) write(ctx context.Context, wanted *appsv1ac.DaemonSetApplyConfiguration, set *appsv1.DaemonSet) error {
	configuration, err := json.Marshal(wanted)
	if err != nil {
		return fmt.Errorf("encoding DaemonSet %q: %w", agentset.Name, err)
	}
	if r.applied.stands(set, configuration, wanted.Labels) {
		return nil
	}
	if set != nil {
		wanted.WithUID(set.UID) // not another one of the same name, which may be somebody else's
	}
	if err := r.Client.Apply(ctx, wanted, client.FieldOwner(v1alpha1.FieldOwnerManager), client.ForceOwnership); err != nil {
		return fmt.Errorf("applying DaemonSet %q: %w", agentset.Name, err)
	}
	r.applied = applied{configuration, *wanted.UID, *wanted.Generation}
	ctrl.LoggerFrom(ctx).Info("Applied the DaemonSet of the agents", "DaemonSet", klog.KRef(r.Template.Namespace, agentset.Name),
		"image", r.Template.Image, "created", set == nil, "generation", r.applied.generation)
	return nil
}

// remove deletes the very DaemonSet that was read, after a live look that there is no policy: the cache may not have
// seen a new one yet.
func (r *DaemonSetReconciler) remove(ctx context.Context, set *appsv1.DaemonSet) error {
	var policies v1alpha1.RebootPolicyList
	if err := r.Live.List(ctx, &policies, client.Limit(1)); err != nil {
		return fmt.Errorf("listing policies from the API server: %w", err)
	}
	if len(policies.Items) > 0 {
		return nil // its event is on the way
	}
	err := r.Client.Delete(ctx, set, client.Preconditions{UID: &set.UID, ResourceVersion: &set.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting DaemonSet %q: %w", agentset.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("Deleted the DaemonSet of the agents: no policy is left",
		"DaemonSet", klog.KRef(r.Template.Namespace, agentset.Name))
	return nil
}
