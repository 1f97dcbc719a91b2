package worker

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

// tooMany failures to halt after.
const tooMany = 1000

// pool is the label of the second policy's nodes, where a schedule has two.
const pool, second = "chaos/pool", "second"

// admin is who edits the policies of a schedule, and cordons and deletes nodes.
type admin struct {
	objects client.Client
	// policies are their names. The second one, where there is one, shares the limit of the first.
	policies []string
	windows  []v1alpha1.Window

	mu sync.Mutex
	// cordoned are the nodes that the administrator has cordoned and not deleted, cordons the revisions in which that was.
	cordoned map[string]bool
	cordons  map[string]bool
}

// createPolicy insists on a new policy, whoever is still in the way.
func (a *admin) createPolicy(ctx context.Context, name string, limit int) {
	insist(ctx, func() error { return client.IgnoreAlreadyExists(a.objects.Create(ctx, a.newPolicy(name, limit))) })
}

func (a *admin) newPolicy(name string, limit int) *v1alpha1.RebootPolicy {
	week := &metav1.Duration{Duration: 168 * time.Hour}
	policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RebootPolicySpec{
		Windows:     a.windows,
		Concurrency: &v1alpha1.Concurrency{MaxUnavailable: new(intstr.FromInt(limit))},
		Autoscaler:  &v1alpha1.Autoscaler{Grace: &metav1.Duration{}},
		Drain:       &v1alpha1.Drain{Timeout: &metav1.Duration{Duration: 24 * time.Hour}},
		Reboot:      &v1alpha1.Reboot{Timeout: week, Settle: &metav1.Duration{}},
		MaxFailures: new(int32(tooMany)),
	}}
	if name != a.policies[0] {
		policy.Spec.NodeSelector, policy.Spec.Priority = &v1alpha1.LabelSelector{MatchLabels: map[string]string{pool: second}}, 1
		policy.Spec.Concurrency = &v1alpha1.Concurrency{Shared: a.policies[0]}
	}
	return policy
}

// heal insists that every policy is there, is not paused, and has the limit of the schedule.
func (a *admin) heal(ctx context.Context, limit int) {
	concurrency := fmt.Sprintf(`{"maxUnavailable":%d}`, limit)
	for _, name := range a.policies {
		if !a.patchPolicy(ctx, name, `{"spec":{"pause":null,"concurrency":`+concurrency+`}}`) {
			a.createPolicy(ctx, name, limit)
		}
		concurrency = `{"maxUnavailable":null}`
	}
}

// patchPolicy insists on a change of a policy, and reports whether there was one to change.
func (a *admin) patchPolicy(ctx context.Context, name, patch string) bool {
	found := false
	insist(ctx, func() error {
		policy := &v1alpha1.RebootPolicy{}
		policy.Name = name
		err := a.objects.Patch(ctx, policy, client.RawPatch(types.MergePatchType, []byte(patch)))
		found = err == nil
		return client.IgnoreNotFound(err)
	})
	return found
}

// releasePolicy deletes a policy, and its finalizer with it.
func (a *admin) releasePolicy(ctx context.Context, name string) error {
	policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := a.objects.Delete(ctx, policy); err != nil {
		return client.IgnoreNotFound(err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	return client.IgnoreNotFound(a.objects.Patch(ctx, policy, patch))
}

// deleteNode insists on the end of a Node, and of a cordon with it.
func (a *admin) deleteNode(ctx context.Context, name string) {
	insist(ctx, func() error {
		return client.IgnoreNotFound(a.objects.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.cordoned, name)
}

// cordon cordons a node that is not cordoned: on one that is, kubectl writes nothing. It reports whether it did. One node is
// enough: it takes a slot.
func (a *admin) cordon(ctx context.Context, name string) bool {
	node := &corev1.Node{}
	if len(a.hasCordoned()) > 0 || a.objects.Get(ctx, client.ObjectKey{Name: name}, node) != nil || node.Spec.Unschedulable {
		return false // an administrator whose command fails does not insist
	}
	node.Spec.Unschedulable = true
	if err := a.objects.Update(ctx, node, client.FieldOwner("kubectl-cordon")); err != nil {
		return false // another write was faster
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cordoned[name], a.cordons[node.ResourceVersion] = true, true
	return true
}

// hasCordoned are the nodes that the administrator has cordoned and not deleted.
func (a *admin) hasCordoned() map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.cordoned)
}

// wrote reports whether a revision is the administrator's. Every status of the operator has conditions.
func (a *admin) wrote(record *judge.Change) bool {
	if record.Policy != nil {
		return record.Gone || len(record.Policy.Status.Conditions) == 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return record.Node != nil && a.cordons[record.Node.ResourceVersion]
}
