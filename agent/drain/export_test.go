package drain

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Refuses reports whether the drain expects the API server to refuse the eviction of a pod under
// these PodDisruptionBudgets of its namespace.
func Refuses(ctx context.Context, pod *corev1.Pod, pdbs ...*policyv1.PodDisruptionBudget) (bool, error) {
	t, err := (&podFeed{run: &run{}}).target(ctx, pod)
	if err != nil {
		return false, err
	}
	e, all := &podState{target: t}, newBudgets()
	for _, pdb := range pdbs {
		all.set(types.NamespacedName{Namespace: pdb.Namespace, Name: pdb.Name}, readBudget(pdb))
	}
	stays := (filter{}).stays(pod)
	return !stays && e.budgeted() && (len(all.covering(t)) > 1 || all.refuse(e)), nil
}
