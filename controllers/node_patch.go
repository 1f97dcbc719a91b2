package controllers

import (
	"slices"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// setMarkers sets what keeps autoscalers and load balancers off the node. The new grant, which is written with it, names it.
func setMarkers(p *nodepatch.Patch, n *plan.Node, grant *protocol.Grant) {
	for _, key := range grant.Annotations {
		p.Annotate(key, plan.AutoscalerValue)
	}
	switch {
	case grant.Excluded:
		p.Label(v1alpha1.LabelExcludeFromLoadBalancers, v1alpha1.ExcludedByOperator)
	case n.RemovesExclusion():
		p.RemoveLabel(v1alpha1.LabelExcludeFromLoadBalancers) // an earlier grant left it behind
	}
}

// removeMarkers removes what the grant on the node has set: of the annotations for autoscalers all that grant, which is written with
// it and has ended, does not keep.
func removeMarkers(p *nodepatch.Patch, n *plan.Node, grant protocol.Grant) {
	for _, key := range n.AnnotationsToRemove() {
		if !slices.Contains(grant.Annotations, key) {
			p.RemoveAnnotation(key)
		}
	}
	if n.RemovesExclusion() {
		p.RemoveLabel(v1alpha1.LabelExcludeFromLoadBalancers)
	}
}
