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

// tooMany is a number of failures that no schedule reaches, so no policy halts.
const tooMany = 1000

// pool is the label of the nodes of the second policy, and second the name of that policy.
const pool, second = "chaos/pool", "second"

// admin plays an administrator who edits policies, and cordons and deletes nodes.
type admin struct {
	objects client.Client
	// policies holds the names of the policies. The second one, if any, shares the limit of the
	// first.
	policies []string
	windows  []v1alpha1.Window

	mu sync.Mutex
	// cordoned holds the nodes that the administrator cordoned and did not delete, and cordons the
	// revisions of those writes.
	cordoned map[string]bool
	cordons  map[string]bool
}

// createPolicy creates a policy and retries until it exists.
func (a *admin) createPolicy(ctx context.Context, name string, limit int) {
	insist(ctx, func() error { return client.IgnoreAlreadyExists(a.objects.Create(ctx, a.newPolicy(name, limit))) })
}

func (a *admin) newPolicy(name string, limit int) *v1alpha1.RebootPolicy {
	week := &v1alpha1.Duration{Duration: 168 * time.Hour}
	policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RebootPolicySpec{
		Windows:     a.windows,
		Concurrency: &v1alpha1.Concurrency{MaxUnavailable: new(intstr.FromInt(limit))},
		Autoscaler:  &v1alpha1.Autoscaler{Grace: &v1alpha1.Duration{}},
		Drain:       &v1alpha1.Drain{Timeout: &v1alpha1.Duration{Duration: 24 * time.Hour}},
		Reboot:      &v1alpha1.Reboot{Timeout: week, Settle: &v1alpha1.Duration{}},
		MaxFailures: new(int32(tooMany)),
	}}
	if name != a.policies[0] {
		policy.Spec.NodeSelector, policy.Spec.Priority = &v1alpha1.LabelSelector{MatchLabels: map[string]string{pool: second}}, 1
		policy.Spec.Concurrency = &v1alpha1.Concurrency{Shared: a.policies[0]}
	}
	return policy
}

// heal restores every policy: it exists, is not paused and has the limit of the schedule.
func (a *admin) heal(ctx context.Context, limit int) {
	concurrency := fmt.Sprintf(`{"maxUnavailable":%d}`, limit)
	for _, name := range a.policies {
		if !a.patchPolicy(ctx, name, `{"spec":{"pause":null,"concurrency":`+concurrency+`}}`) {
			a.createPolicy(ctx, name, limit)
		}
		concurrency = `{"maxUnavailable":null}`
	}
}

// patchPolicy retries a patch until it succeeds, and reports whether the policy exists.
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

// releasePolicy deletes a policy together with its finalizer.
func (a *admin) releasePolicy(ctx context.Context, name string) error {
	policy := &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := a.objects.Delete(ctx, policy); err != nil {
		return client.IgnoreNotFound(err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	return client.IgnoreNotFound(a.objects.Patch(ctx, policy, patch))
}

// deleteNode retries the deletion of a Node, and forgets its cordon.
func (a *admin) deleteNode(ctx context.Context, name string) {
	insist(ctx, func() error {
		return client.IgnoreNotFound(a.objects.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.cordoned, name)
}

// cordon cordons a node and reports whether it did. It skips nodes that are cordoned already, like
// kubectl, and cordons at most one node at a time because a cordon takes a slot.
func (a *admin) cordon(ctx context.Context, name string) bool {
	node := &corev1.Node{}
	if len(a.hasCordoned()) > 0 || a.objects.Get(ctx, client.ObjectKey{Name: name}, node) != nil || node.Spec.Unschedulable {
		return false // an administrator does not retry
	}
	node.Spec.Unschedulable = true
	if err := a.objects.Update(ctx, node, client.FieldOwner("kubectl-cordon")); err != nil {
		return false // another write came first
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cordoned[name], a.cordons[node.ResourceVersion] = true, true
	return true
}

// hasCordoned returns the nodes that the administrator cordoned and did not delete.
func (a *admin) hasCordoned() map[string]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.cordoned)
}

// wrote reports whether the administrator wrote a revision. Every status that the operator writes
// has conditions.
func (a *admin) wrote(record *judge.Change) bool {
	if record.Policy != nil {
		return record.Gone || len(record.Policy.Status.Conditions) == 0
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return record.Node != nil && a.cordons[record.Node.ResourceVersion]
}
