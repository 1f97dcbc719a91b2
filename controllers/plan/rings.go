package plan

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// Rings are the rings of spec.rings. Nodes that none of them selects form one more ring, the last.
type Rings struct {
	order     []v1alpha1.Ring
	selectors []labels.Selector
}

// RingsOf reads the rings of a policy. The error names the selector that cannot be evaluated.
func RingsOf(policy *v1alpha1.RebootPolicy) (Rings, error) {
	var r Rings
	for _, ring := range policy.Spec.Rings {
		selector, err := ring.NodeSelector.Selector()
		if err != nil {
			return Rings{}, fmt.Errorf("spec.rings, ring %s: %w", ring.Name, err)
		}
		r.order, r.selectors = append(r.order, ring), append(r.selectors, selector)
	}
	return r, nil
}

// Of returns the number of a node's ring, from 0. A deleted node is in the last one.
func (r Rings) Of(n *record.Node) int {
	if n == nil {
		return len(r.order)
	}
	for i, selector := range r.selectors {
		if selector.Matches(labels.Set(n.Labels)) {
			return i
		}
	}
	return len(r.order)
}

// name returns the name of a node's ring, or "" if it is in none.
func (r Rings) name(n *record.Node) string {
	if ring := r.Of(n); ring < len(r.order) {
		return r.order[ring].Name
	}
	return ""
}

// Soak returns how long each rebooted node of a ring must be back in service before a later ring
// starts.
func (r Rings) Soak(ring int) time.Duration {
	if ring >= len(r.order) {
		return 0
	}
	return r.order[ring].SoakOrDefault()
}

// Waited reports whether other nodes wait for those of a ring.
func (r Rings) Waited(ring int) bool { return ring < len(r.order) }

// ringed are the rings of a fleet.
type ringed struct {
	Rings

	// selected is the number of nodes that the policy governs in each ring.
	selected []int
	// limits are the rings' own maxUnavailable in nodes, for rings that have one.
	limits map[int]int32
	// back holds the time when each node was back in service, from the policy's history.
	back map[string]time.Time
}

func ringedOf(policy *v1alpha1.RebootPolicy, now time.Time) (ringed, error) {
	rings, err := RingsOf(policy)
	if err != nil || len(rings.order) == 0 {
		return ringed{}, err
	}
	r := ringed{Rings: rings, selected: make([]int, len(rings.order)+1), limits: map[int]int32{}, back: map[string]time.Time{}}
	for past := range record.History(policy, now) {
		if past.Result == v1alpha1.RebootSucceeded {
			r.back[past.Node] = past.EndedAt.Time
		}
	}
	return r, nil
}

// scale computes maxUnavailable of each ring, once all nodes are counted.
func (r *ringed) scale() error {
	for i, ring := range r.order {
		if ring.MaxUnavailable == nil {
			continue
		}
		limit, err := Limit(*ring.MaxUnavailable, r.selected[i])
		if err != nil {
			return fmt.Errorf("spec.rings, maxUnavailable of ring %s: %w", ring.Name, err)
		}
		r.limits[i] = limit
	}
	return nil
}

// add counts a node, and reports whether it may block later rings although it is at rest.
func (r *ringed) add(n *record.Node, now time.Time) (soaks bool) {
	if len(r.order) == 0 {
		return false
	}
	ring := r.Of(n)
	r.selected[ring]++
	soak := r.Soak(ring)
	until, _ := r.soaks(n, soak)
	return soak > 0 && (n.Incredible || now.Before(until))
}

// backAt returns when the node was back in service after its last granted reboot, from its own
// record or else from the history. It returns zero if neither has one.
func (r *ringed) backAt(n *record.Node) time.Time {
	if g := n.Grant; g != nil && g.State == protocol.GrantFinished {
		return g.At.Time
	}
	return r.back[n.Name]
}

// soaks returns until when the node blocks later rings after its reboot, and whether it went down
// during the soak and is still not Ready. A soak starts over if the node was not Ready in between.
// Because a Node shows only its last transition, earlier restarts of the soak are not visible, so
// an interruption counts until twice the soak has passed since the reboot.
func (r *ringed) soaks(n *record.Node, soak time.Duration) (until time.Time, down bool) {
	back := r.backAt(n)
	if back.IsZero() || soak == 0 {
		return time.Time{}, false
	}
	return soaks(n, back, soak)
}

// soaks returns until when a node soaks after it came back, and whether it is down.
func soaks(n *record.Node, back time.Time, soak time.Duration) (until time.Time, down bool) {
	if n.ReadySince.After(back) && n.ReadySince.Before(back.Add(2*soak)) {
		return n.ReadySince.Add(soak), !n.Ready
	}
	return back.Add(soak), false
}

// ringWaits blocks a node until all nodes of the earlier rings are done. All waiting nodes show the
// same message.
func ringWaits(c *choice, _ *record.Node) *block.Block { return c.unfinished }

// left is a node of a ring that is not done, with the reason.
type left struct {
	node   string
	reason v1alpha1.Reason
}

// before sorts nodes that need a person first, and then those that are being rebooted.
func (l left) before(other left) bool {
	if a, b := l.rank(), other.rank(); a != b {
		return a < b
	}
	return l.node < other.node
}

// String names a node only if it needs a person. All nodes of later rings show this message, and
// the name of the rebooting node would change it with every reboot.
func (l left) String() string {
	if l.rank() > 0 {
		return "some of its nodes are not done"
	}
	return fmt.Sprintf("%s is not done (%s)", l.node, l.reason)
}

func (l left) rank() int {
	switch {
	case l.reason == v1alpha1.ReasonGranted:
		return 1
	case needNoAction[l.reason]:
		return 2
	}
	return 0
}

// unfinished returns what later rings wait for in this one, once its nodes are decided about, or
// nil. Nodes that a person has paused do not count.
func unfinished(c *choice, ring v1alpha1.Ring, members []*record.Node) *block.Block {
	var first left
	var last *record.Node
	var until time.Time
	soak := ring.SoakOrDefault()
	for _, n := range members {
		if n.Paused(c.Now) {
			continue
		}
		ends, down := c.rings.soaks(n, soak)
		is := left{n.Name, undone(c, n, down)}
		switch {
		case is.reason == "" && (ends.After(until) || ends.Equal(until) && last != nil && n.Name < last.Name):
			last, until = n, ends
		case is.reason == "":
		default:
			if first.node == "" || is.before(first) {
				first = is
			}
		}
	}
	lost := lostIn(c.attempts, ring.Name, c.plan.Reboots)
	switch {
	case len(lost) > 0:
		return block.New(v1alpha1.ReasonRingWaits, `waiting for ring %s: Node %s was deleted during its reboot, and no node of the ring has come back since; `+
			`to resume: kubectl annotate rebootpolicy %s %s="why"`, ring.Name, message.Some(lost), c.name, v1alpha1.AnnotationResume)
	case first.node != "":
		return block.New(v1alpha1.ReasonRingWaits, "waiting for ring %s: %s; paused nodes do not count", ring.Name, first)
	case c.Now.Before(until):
		return block.New(v1alpha1.ReasonRingWaits, "waiting for ring %s: %s has been back in service since %s; its soak ends %s",
			ring.Name, last.Name, c.instant(until.Add(-soak)), c.instant(until)).EndsAt(until)
	}
	return nil
}

// undone returns why the node is not back in service, or "" if it is or needs no reboot.
func undone(c *choice, n *record.Node, down bool) v1alpha1.Reason {
	switch o := c.waiting[n.Name]; {
	case o != nil && o.ShortLived:
		return v1alpha1.ReasonGranted // do not rewrite every node of later rings for a few seconds
	case o != nil:
		return o.Reason
	case c.slots.hold(n.Name):
		for _, t := range c.plan.Reboots {
			if t.Entry.Node == n.Name {
				return t.Reason
			}
		}
		return v1alpha1.ReasonGranted
	case n.NeedsReboot():
		return v1alpha1.ReasonGranted // its last reboot has just ended, and did not end the need
	case down:
		return v1alpha1.ReasonNodeUnavailable
	}
	return ""
}

// split groups nodes by ring.
func (r Rings) split(nodes []*record.Node) [][]*record.Node {
	rings := make([][]*record.Node, len(r.order)+1)
	for _, n := range nodes {
		ring := r.Of(n)
		rings[ring] = append(rings[ring], n)
	}
	return rings
}
