package plan

import (
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// agentReports returns the check for one of the agent's reasons. The agent reports its reasons in
// the order of the checks.
func agentReports(reason v1alpha1.Reason) func(c *choice, n *record.Node) *block.Block {
	return func(c *choice, n *record.Node) *block.Block {
		if o := agentBlocks(c, n); o != nil && o.Reason == reason {
			return o
		}
		return nil
	}
}

// agentBlocks returns the agent's first reason that the policy does not ignore. The agent knows no
// policy before it has a grant, so it also reports reasons that this policy ignores.
func agentBlocks(c *choice, n *record.Node) *block.Block {
	for _, o := range n.BlockedBy {
		if ignoredBy(c.Policy, o.Reason) == "" {
			return &block.Block{Reason: o.Reason, Message: o.Message}
		}
	}
	return nil
}

// ignoredBy returns the field of spec.reboot that ignores a reason of the agent, or "" if the
// reason counts.
func ignoredBy(policy *v1alpha1.RebootPolicy, reason v1alpha1.Reason) string {
	reboot := policy.Spec.RebootOrDefault()
	switch {
	case reason == v1alpha1.ReasonInhibited && reboot.InhibitorsOrDefault() == v1alpha1.ObstacleIgnore:
		return "inhibitors"
	case reason == v1alpha1.ReasonCoordinatorConflict && reboot.CoordinatorsOrDefault() == v1alpha1.ObstacleIgnore:
		return "coordinators"
	}
	return ""
}
