package plan_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// TestStories plays random stories. Agents are slow, silent or fail, hosts are lost, people change
// whatever they may at any time, managers die and lose races. The invariants are checked at every
// instant. At the end each node that still needs a reboot says why it waits, or is being rebooted.
func TestStories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawStory(t)
		c := play(t, s, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)))
		c.checkRest()
		for name, h := range c.hosts {
			if h.node == nil {
				continue
			}
			if n := h.view(); !n.NeedsReboot() || n.Outstanding() {
				continue
			}
			if d := conditionOf(h.node, v1alpha1.NodeRebootPermitted); d == nil || d.Status != corev1.ConditionFalse {
				c.broken("node %s needs a reboot, and nothing reports why it waits", name)
			}
		}
	})
}

func drawStory(t *rapid.T) sequence {
	s := sequence{lasts: 8 * time.Hour}
	for _, name := range somePolicies[:rapid.IntRange(1, 2).Draw(t, "policies")] {
		p := policy(name, atMost(rapid.SampledFrom([]string{"1", "2", "50%"}).Draw(t, "maxUnavailable")), priority(int32(len(s.policies))))
		if len(s.policies) > 0 {
			selects("pool", "x")(p)
		}
		maxFailures(int32(rapid.IntRange(1, 4).Draw(t, "maxFailures")))(p)
		if oneIn(t, 4, "hooks") {
			hooked("example.com/a")(p)
		}
		s.policies = append(s.policies, p)
	}
	for _, name := range someNodes[:rapid.IntRange(1, len(someNodes)).Draw(t, "nodes")] {
		s.hosts = append(s.hosts, drawStoryHost(t, name))
	}
	for range rapid.IntRange(0, 8).Draw(t, "acts") {
		s.script = append(s.script, drawAct(t, s))
	}
	slices.SortStableFunc(s.script, func(a, b act) int { return cmp.Compare(a.after, b.after) })
	return s
}

func drawStoryHost(t *rapid.T, name string) *host {
	h := needy(name, needsSince(time.Duration(rapid.IntRange(1, 3).Draw(t, "since"))*time.Hour), drains(minutes(t, 0, 25, "drain")), slow(minutes(t, 0, 6, "reacts")))
	h.reboots, h.failDrains = minutes(t, 1, 40, "reboot"), rapid.IntRange(0, 1).Draw(t, "failing drains")
	h.silent, h.lost = oneIn(t, 10, "silent"), oneIn(t, 10, "lost")
	for _, o := range []struct {
		in     int
		label  string
		option func(*host)
	}{
		{3, "pool x", label("pool", "x")},
		{3, "control plane", label(record.ControlPlaneLabels[0], "")},
		{10, "cordoned", cordoned},
		{10, "not Ready", notReady},
	} {
		if oneIn(t, o.in, o.label) {
			o.option(h)
		}
	}
	return h
}

func minutes(t *rapid.T, from, to int, label string) time.Duration {
	return time.Duration(rapid.IntRange(from, to).Draw(t, label)) * time.Minute
}

// drawAct draws what somebody does to a node or a policy, which may not exist any more.
func drawAct(t *rapid.T, s sequence) act {
	node := s.hosts[rapid.IntRange(0, len(s.hosts)-1).Draw(t, "node")].name
	name := s.policies[rapid.IntRange(0, len(s.policies)-1).Draw(t, "policy")].Name
	acts := []struct {
		what string
		does func(*cluster)
	}{
		{"pauses " + node, changes(node, pause)},
		{"goes on with " + node, changes(node, unpause)},
		{"uncordons " + node, changes(node, uncordon)},
		{"cordons " + node, changes(node, func(h *host, n *corev1.Node) { n.Spec.Unschedulable, h.cordonedBy = true, byAdmin })},
		{"moves " + node + " to pool x", changes(node, relabel("pool", "x"))},
		{"moves " + node + " to pool y", changes(node, relabel("pool", "y"))},
		{"reboots " + node + " by hand", func(c *cluster) { c.hosts[node].comeBack(c) }},
		{"kills the agent of " + node, func(c *cluster) { c.hosts[node].silent = true }},
		{"repairs the agent of " + node, func(c *cluster) { c.hosts[node].silent = false; c.touched = true }},
		{"repairs " + node, func(c *cluster) {
			if h := c.hosts[node]; h.down {
				h.lost, h.backAt = false, c.now
			}
		}},
		{"deletes " + node, deleteNode(node)},
		{"lets a hook of " + node + " approve", changes(node, sets("example.com/a", "true"))},
		{"lets a hook of " + node + " refuse", changes(node, sets("example.com/a", "false"))},
		{"removes the grant of " + node, changes(node, func(_ *host, n *corev1.Node) {
			if attempted(record.Of(n)) { // otherwise the node would look as if it were still rebooting
				delete(n.Annotations, v1alpha1.AnnotationGrant)
			}
		})},
		{"limits " + name + " to 1", onPolicy(name, atMost("1"))},
		{"limits " + name + " to 3", onPolicy(name, atMost("3"))},
		{"pauses " + name, onPolicy(name, paused(nil, ""))},
		{"goes on with " + name, onPolicy(name, func(p *v1alpha1.RebootPolicy) { p.Spec.Pause = nil })},
		{"resumes " + name, onPolicy(name, resume("fixed"))},
		{"dry-runs " + name, onPolicy(name, dryRun)},
		{"enforces " + name, onPolicy(name, func(p *v1alpha1.RebootPolicy) { p.Spec.Mode = v1alpha1.ModeEnforce })},
		{"gives " + name + " priority 1", onPolicy(name, priority(1))},
		{"deletes " + name, ifThere(name, deletePolicy(name))},
		{"loses the status of " + name, ifThere(name, loseStatus(name))},
	}
	a := acts[rapid.IntRange(0, len(acts)-1).Draw(t, "act")]
	return act{after: minutes(t, 0, 4*60, "after"), what: "somebody " + a.what, does: a.does}
}

func onPolicy(name string, change func(*v1alpha1.RebootPolicy)) func(*cluster) {
	return ifThere(name, edits(name, change))
}

func ifThere(policy string, does func(*cluster)) func(*cluster) {
	return func(c *cluster) {
		if c.policies[policy] != nil {
			does(c)
		}
	}
}
