package plan_test

import (
	"cmp"
	"maps"
	"slices"

	gocmp "github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// check is what must hold at every instant.
func (c *cluster) check() {
	controlPlanes := 0
	for name, h := range c.hosts {
		if h.node == nil {
			continue
		}
		n := h.view()
		if !disrupted(n) {
			continue
		}
		if n.ControlPlane {
			controlPlanes++
		}
		if !c.listed(name, n.Progress.Seq) {
			c.broken("node %s is disrupted outside the ledger", name)
		}
	}
	if controlPlanes > 1 {
		c.broken("%d control-plane nodes are disrupted", controlPlanes)
	}
	for name, p := range c.policies {
		if c.lost[name] {
			continue
		}
		c.room[name] = max(c.limit(name), min(c.room[name], len(p.Status.Grants)))
		if got := len(p.Status.Grants); got > c.room[name] {
			c.broken("policy %s holds %d nodes and may hold %d", name, got, c.room[name])
		}
	}
}

// disrupted reports whether the workload of a node is disturbed by us.
func disrupted(n plan.Node) bool {
	p, g := n.Progress, n.Grant
	if p == nil || p.Phase == protocol.PhaseAborted {
		return false
	}
	over := g != nil && (g.Seq > p.Seq || g.Seq == p.Seq && g.State == protocol.GrantFinished)
	return p.Phase == protocol.PhaseDraining || !over
}

func (c *cluster) listed(node string, seq int64) bool {
	for name, p := range c.policies {
		if c.lost[name] || slices.ContainsFunc(p.Status.Grants, func(e v1alpha1.LedgerEntry) bool { return e.Node == node && e.Seq == seq }) {
			return true
		}
	}
	return false
}

// shares reports whether the limit of a policy counts the nodes of another one.
func (c *cluster) shares(by, name string) bool {
	p, with := c.policies[by], c.policies[name]
	return p != nil && with != nil && p.Spec.Shared() == name && with.DeletionTimestamp == nil && with.Spec.Shared() == ""
}

// limit is what the spec allows now, counted without the planner.
func (c *cluster) limit(name string) int {
	governor, selected := c.governor(), 0
	for _, h := range c.hosts {
		if h.node == nil {
			continue
		}
		if by := governor.Govern(h.node.Labels).Policy; by == name || c.shares(by, name) {
			selected++
		}
	}
	allowed := c.policies[name].Spec.MaxUnavailableOrDefault()
	if allowed.Type == intstr.Int {
		return allowed.IntValue()
	}
	percent, err := intstr.GetScaledValueFromIntOrPercent(&allowed, 100, false)
	if err != nil {
		return 0
	}
	if percent == 0 || selected == 0 {
		return 0
	}
	return max(1, selected*percent/100)
}

// checkGrants: new grants may not take more nodes down than the limit, counting those that are down for other reasons.
func (c *cluster) checkGrants(name string, p plan.Plan) {
	holder := cmp.Or(p.InLedgerOf, name)
	governor, before := c.governor(), map[string]bool{}
	for host, h := range c.hosts {
		if h.node == nil {
			continue
		}
		if by := governor.Govern(h.node.Labels).Policy; by != holder && !c.shares(by, holder) {
			continue
		}
		if n := h.view(); !n.Ready || n.Cordoned || n.Deleting {
			before[host] = true
		}
	}
	for _, e := range slices.Concat(p.Ledger()[:len(p.Ledger())-len(p.Granted)], p.Adopted, p.Others) {
		before[e.Node] = true
	}
	after := maps.Clone(before)
	for _, e := range p.Granted {
		after[e.Node] = true
	}
	if len(after) > len(before) && len(after) > c.limit(holder) {
		c.broken("policy %s takes %d nodes down and may %d", name, len(after), c.limit(holder))
	}
	c.checkDomains(name, p)
	if len(p.Granted) > 0 && c.policies[name].DeletionTimestamp != nil {
		c.broken("policy %s is being deleted and grants", name)
	}
}

// checkDomains: a new grant keeps to the domain of all that hold one, whatever happened to the policy or the labels before.
func (c *cluster) checkDomains(name string, p plan.Plan) {
	key := c.policies[name].Spec.TopologyKey()
	for _, granted := range p.Granted {
		for _, e := range p.Ledger() {
			if h := c.hosts[e.Node]; key != "" && h.node != nil && !overran(p, e) && h.node.Labels[key] != c.hosts[granted.Node].node.Labels[key] {
				c.broken("policy %s grants %s while %s of another domain holds a grant", name, granted.Node, e.Node)
			}
		}
	}
}

// checkStatus applies the rules by which the API server refuses a status (CEL in the CRD).
func (c *cluster) checkStatus(before, after *v1alpha1.RebootPolicy) {
	was, is := before.Status, after.Status
	for _, e := range is.Grants {
		if e.Seq > is.Seq {
			c.broken("status.seq must be at least the seq of every grant")
		}
		if len(is.Grants) > int(is.Limit) && e.Seq > was.Seq {
			c.broken("no new grant while the ledger is at or over status.limit")
		}
	}
	if is.Seq < was.Seq {
		c.broken("status.seq never shrinks")
	}
	own := after.Spec.Shared() == "" || after.Spec.OwnLimit() != nil
	if most := after.Spec.MaxUnavailableOrDefault(); own && is.Limit != was.Limit && most.Type == intstr.Int && is.Limit > most.IntVal {
		c.broken("status.limit may not be raised above spec.concurrency.maxUnavailable")
	}
}

// checkIdempotent: a plan with nothing to do, made again, is the same plan.
func (c *cluster) checkIdempotent(name string, p plan.Plan) {
	if c.random != nil {
		return
	}
	if diff := gocmp.Diff(p, plan.Of(c.snapshot(name)), planOptions...); diff != "" {
		c.broken("policy %s changes its mind (-before +after):\n%s", name, diff)
	}
}

// checkMarks: once they are written there are none to write, and who is not held carries what its condition reports.
func (c *cluster) checkMarks(name string) {
	if c.random != nil {
		return
	}
	if left := plan.Of(c.snapshot(name)).Markers; len(left) > 0 {
		c.broken("policy %s has markers left: %v", name, left)
	}
}

// checkRest is what must hold in the end, too: a node with the taint waits for its turn or is being rebooted, and no node
// whose grant is over shows a failed reboot, or autoscaler annotations after their grace.
func (c *cluster) checkRest() {
	for name, h := range c.hosts {
		if h.node == nil {
			continue
		}
		n, turn := h.view(), []v1alpha1.Reason{v1alpha1.ReasonBudgetExhausted, v1alpha1.ReasonDomainBusy, v1alpha1.ReasonControlPlaneGuard, v1alpha1.ReasonSpacing}
		turn = append(turn, v1alpha1.ReasonBlockingPod)
		waits := n.Permitted != nil && slices.Contains(turn, v1alpha1.Reason(n.Permitted.Reason))
		if held := n.Outstanding() || c.granted(name); n.Pending != "" && !waits && !held || (len(n.AnnotationsToRemove()) > 0 && !c.inGrace(&n) || n.RemovesExclusion() || n.Planned != nil || n.Failed != nil) && !held {
			c.broken("node %s is left with taints %v and annotations %v", name, h.node.Spec.Taints, h.node.Annotations)
		}
	}
}

// inGrace reports whether the story ends within the grace of the node's last grant.
func (c *cluster) inGrace(n *plan.Node) bool {
	policy, ended := c.policies[c.governor().Govern(n.Labels).Policy], n.Grant.At.Time
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

// overran reports whether an entry has overrun its deadline.
func overran(p plan.Plan, e v1alpha1.LedgerEntry) bool {
	return slices.ContainsFunc(p.Reboots, func(t plan.Reboot) bool {
		return t.Entry.Node == e.Node && t.Entry.Seq == e.Seq && !t.FailedAt.IsZero()
	})
}
