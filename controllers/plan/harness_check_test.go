package plan_test

import (
	"context"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/judge/definition"
)

// take passes a write to the judge, with the current actor as its writer.
func (c *cluster) take(r judge.Change) {
	r.At, r.By = c.now, c.by
	c.judge.Take(r)
	if found := c.judge.Violations(); len(found) > c.found {
		c.broken("%s", found[c.found])
	}
}

// attempted reports whether a node is in an attempt that no newer grant has replaced.
func attempted(n record.Node) bool {
	return n.Outstanding() && n.Progress != nil && (n.Grant == nil || n.Grant.Seq == n.Progress.Seq)
}

// checkStatus validates a changed ledger or limit against the CustomResourceDefinition. Specs that
// the definition refuses are skipped.
func (c *cluster) checkStatus(before, after *v1alpha1.RebootPolicy) {
	was, is := before.Status, after.Status
	if is.Seq == was.Seq && is.Limit == was.Limit && len(is.Grants) <= len(was.Grants) {
		return
	}
	shipped, err := definition.Shipped()
	if err != nil {
		c.broken("the CustomResourceDefinition cannot be read: %v", err)
	}
	if err := shipped.Refusal(context.Background(), before, after); err != nil && shipped.Refusal(context.Background(), before, before) == nil {
		c.broken("the API server refuses the status: %v", err)
	}
}

// checkIdempotent checks that planning again gives the same plan if there is nothing to do.
func (c *cluster) checkIdempotent(name string, p plan.Plan) {
	if c.random != nil {
		return
	}
	if diff := gocmp.Diff(p, plan.Of(c.snapshot(name)), planOptions...); diff != "" {
		c.broken("policy %s changes its mind (-before +after):\n%s", name, diff)
	}
}

// checkMarkers checks that no markers are due once they are written, and that nodes without a grant
// carry what their condition says.
func (c *cluster) checkMarkers(name string) {
	if c.random != nil {
		return
	}
	if left := plan.Of(c.snapshot(name)).Markers; len(left) > 0 {
		c.broken("policy %s has markers left: %v", name, left)
	}
}

// checkRest checks what must also hold at the end. A node with the taint waits for its turn or is
// being rebooted. No node whose grant is over shows a failed reboot, or autoscaler annotations
// after their grace.
func (c *cluster) checkRest() {
	for name, h := range c.hosts {
		if h.node == nil {
			continue
		}
		n, turn := h.view(), []v1alpha1.Reason{v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonDomainBusy, v1alpha1.ReasonControlPlaneGuard, v1alpha1.ReasonSpacing}
		turn = append(turn, v1alpha1.ReasonBlockingPod)
		waits := n.Permitted != nil && slices.Contains(turn, v1alpha1.Reason(n.Permitted.Reason))
		if held := n.Outstanding() || c.granted(name); n.Pending != "" && !waits && !held || (len(n.AnnotationsToRemove()) > 0 && !c.inGrace(&n) || n.RemovesExclusion() || n.RemovesRemediation() || n.Planned != nil || n.Failed != nil) && !held {
			c.broken("node %s is left with taints %v and annotations %v", name, h.node.Spec.Taints, h.node.Annotations)
		}
	}
}

// inGrace reports whether the story ends within the autoscaler grace of the node's last grant.
func (c *cluster) inGrace(n *record.Node) bool {
	policy, ended := c.policies[c.governor().Govern(n).Policy], n.Grant.At.Time
	if p := n.Progress; p != nil && p.At.After(ended) {
		ended = p.At.Time
	}
	return policy != nil && ended.Add(policy.Spec.AutoscalerGraceOrDefault()).After(c.end)
}

// granted reports whether a ledger holds the node.
func (c *cluster) granted(node string) bool {
	for _, p := range c.policies {
		if slices.ContainsFunc(p.Status.Grants, func(e v1alpha1.LedgerEntry) bool { return e.Node == node }) {
			return true
		}
	}
	return false
}

func (c *cluster) broken(format string, args ...any) {
	c.Helper()
	c.record(c)
	c.Errorf("at %s: "+format, append([]any{stamp(c.now)}, args...)...)
	c.Fatalf("The story so far:\n%s", c.String())
}
