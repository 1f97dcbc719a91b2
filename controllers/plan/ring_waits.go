package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/halt"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// ringWaits blocks a node until all nodes of the earlier rings are done. All waiting nodes show the
// same message.
func ringWaits(c *choice, _ *record.Node) *block.Block { return c.unfinished }

// left is a node of a ring that is not done, with the reason.
type left struct {
	node   string
	reason v1alpha1.Reason
	// down is true if the node needs no reboot, and is not Ready after its last one.
	down bool
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
		ends, down := c.order.Rings.Soaks(n)
		is := left{n.Name, undone(c, n, down), down && !n.NeedsReboot()}
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
	lost := halt.LostIn(c.attempts, ring.Name, c.plan.Reboots)
	switch {
	case len(lost) > 0:
		b := block.New(v1alpha1.ReasonRingWaits, `waiting for ring %s: Node %s was deleted during its reboot, and no node of the ring has come back since; `+
			`to resume: kubectl annotate rebootpolicy %s %s="why"`, ring.Name, message.Some(lost), c.Policy.Name, v1alpha1.AnnotationResume)
		b.Endless = !slices.ContainsFunc(members, (*record.Node).NeedsReboot) // otherwise the next one may come back
		return b
	case first.node != "":
		b := block.New(v1alpha1.ReasonRingWaits, "waiting for ring %s: %s; paused nodes do not count", ring.Name, first)
		b.Endless = first.down
		return b
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
	case c.slots.Hold(n.Name):
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
