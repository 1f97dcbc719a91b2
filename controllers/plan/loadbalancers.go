package plan

import (
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// SetsExclusion reports whether a new grant of the policy sets the label that keeps load balancers off the node: where nobody else
// has set it, to any value. One that an earlier grant left behind is still the manager's, and passes to the new grant.
func (n *Node) SetsExclusion(policy *v1alpha1.RebootPolicy) bool {
	_, there := n.Labels[v1alpha1.LabelExcludeFromLoadBalancers]
	return policy.Spec.DrainOrDefault().ExcludesFromLoadBalancers() && (!there || n.RemovesExclusion())
}

// RemovesExclusion reports whether the label goes when the grant that the node shows ends: it has set it, and nobody has changed
// it since.
func (n *Node) RemovesExclusion() bool {
	return n.Grant != nil && n.Grant.Excluded && n.Labels[v1alpha1.LabelExcludeFromLoadBalancers] == v1alpha1.ExcludedByOperator
}
