// Package snapshot reads what decisions about reboots look at. The manager decides from it, and `kubectl reboot`
// explains from it: one snapshot gives both the same answer.
package snapshot

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// page is how many Nodes one page of a LIST holds; each is trimmed before the next page is read.
const page = 250

// Policies lists all RebootPolicies.
func Policies(ctx context.Context, reader client.Reader) ([]v1alpha1.RebootPolicy, error) {
	var policies v1alpha1.RebootPolicyList
	if err := reader.List(ctx, &policies); err != nil {
		return nil, fmt.Errorf("listing policies: %w", err)
	}
	return policies.Items, nil
}

// Nodes lists all Nodes from the API server, trimmed as Trim does. A cache has no pages: it is listed without this.
func Nodes(ctx context.Context, live client.Reader, also ...corev1.NodeConditionType) ([]corev1.Node, error) {
	var all []corev1.Node
	if err := EachNode(ctx, live, func(n *corev1.Node) { all = append(all, *Trim(n, also...)) }); err != nil {
		return nil, err
	}
	return all, nil
}

// EachNode lists all Nodes from the API server in pages of one consistent revision, and hands over each of them.
func EachNode(ctx context.Context, live client.Reader, take func(*corev1.Node)) error {
	for token := ""; ; {
		var nodes corev1.NodeList
		if err := live.List(ctx, &nodes, client.Limit(page), client.Continue(token)); err != nil {
			return fmt.Errorf("listing nodes from the API server: %w", err)
		}
		for i := range nodes.Items {
			take(&nodes.Items[i])
		}
		if token = nodes.Continue; token == "" {
			return nil
		}
	}
}

// Views are the Nodes as decisions look at them.
func Views(nodes []corev1.Node) []*plan.Node {
	views := make([]*plan.Node, len(nodes))
	for i := range nodes {
		views[i] = new(plan.NodeOf(&nodes[i]))
	}
	return views
}

// Of is the snapshot for one of the policies at an instant. A nil policy represents the nodes that none governs. The results
// of gates are those of the status; the manager, which queries them, has newer ones.
func Of(policy *v1alpha1.RebootPolicy, policies []v1alpha1.RebootPolicy, nodes []*plan.Node, now time.Time) plan.Snapshot {
	s := plan.Snapshot{Now: now, Policy: policy, Governor: plan.NewGovernor(policies), Nodes: nodes}
	if policy != nil {
		s.Schedule, s.WindowInvalid = scheduleOf(policy)
		s.Window = s.Schedule.At(now)
		s.Gates, s.GatesInvalid = policy.Status.Gates, gatesInvalid(policy)
		s.Ledger = s.Governor.LedgerOf(policy, policies)
	}
	return s
}

// gatesInvalid is what the manager reports of a spec that it cannot act on, where that may be about an expression: only the manager
// compiles them.
func gatesInvalid(policy *v1alpha1.RebootPolicy) string {
	c := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionAccepted)
	if len(policy.Spec.ObjectGates()) == 0 || c == nil || c.Reason != string(v1alpha1.ReasonInvalid) || c.ObservedGeneration != policy.Generation {
		return ""
	}
	return c.Message
}

// scheduleOf resolves the policy's windows. What cannot be compiled is closed.
func scheduleOf(policy *v1alpha1.RebootPolicy) (window.Schedule, string) {
	schedule, err := window.Of(&policy.Spec)
	if err != nil {
		return window.Schedule{}, err.Error()
	}
	return schedule, ""
}
