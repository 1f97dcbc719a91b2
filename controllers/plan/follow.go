package plan

import (
	"fmt"
	"slices"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// checks are the planner's checks, for reboots that are granted already.
type checks struct{ *choice }

// Cancels returns why to cancel a grant that the agent has not begun to use, or nil, and whether the
// gates decide about it.
func (c checks) Cancels(t record.Times) (cause *block.Block, gates bool) {
	if cause = c.withdrawal(t); cause != nil {
		return cause, false
	}
	o := c.first(untilBegun, t.Node)
	if o != nil {
		cause = &o.Block
	}
	return cause, o.reaches(gateChecks)
}

// AwaitsGate returns the message about a gate that has to answer before the grant is published, or
// nil.
func (c checks) AwaitsGate() *block.Block {
	return c.gates.Unknown()
}

// withdrawal returns what has ended the reason for a grant, whatever the checks say, or nil.
func (c checks) withdrawal(t record.Times) *block.Block {
	n, e := t.Node, t.Entry
	switch g := c.Governor.Govern(n); {
	case e.WithdrawnAt != nil:
		return block.New(v1alpha1.ReasonGrantWithdrawn, "the ledger of policy %s has withdrawn or lost the grant, so the agent must not use it", c.Policy.Name)
	case c.Policy.DeletionTimestamp != nil:
		return block.New(v1alpha1.ReasonCancelled, "policy %s is being deleted", c.Policy.Name)
	case n.BootID != e.BootID:
		return block.New(v1alpha1.ReasonCancelled, "the node was rebooted by somebody else after the grant")
	case !n.NeedsReboot():
		return block.New(v1alpha1.ReasonCancelled, "the node no longer needs a reboot")
	case g.Policy != c.Policy.Name && len(g.Rivals) > 0:
		return block.New(v1alpha1.ReasonPolicyConflict, "policies %s select the node with the same priority", list(g.Rivals))
	case g.Policy != c.Policy.Name:
		return block.New(v1alpha1.ReasonNoPolicy, "policy %s does not govern the node any more", c.Policy.Name)
	case t.GrantInFuture():
		return block.New(v1alpha1.ReasonRecordUnreadable, "the grant is dated %s, more than an hour in the future", c.instant(n.Grant.At.Time))
	case c.dryRun():
		return block.New(v1alpha1.ReasonDryRun, "policy %s is in mode DryRun", c.Policy.Name)
	}
	return nil
}

// Again decides about one entry again, from a newer reading of its node, which is nil if the Node
// does not exist. Whether the policy has halted and whether there is room stay as planned, because
// that depends on all nodes. It returns the zero Reboot if the ledger does not hold the entry.
func (p *Plan) Again(s Snapshot, n *record.Node, e v1alpha1.LedgerEntry) underway.Reboot {
	s.Nodes = nil
	if n != nil {
		s.Nodes = []*record.Node{n}
	}
	c := newChoice(s, &p.Halt)
	for _, held := range c.Entries.Own {
		if held.Node == e.Node && held.Seq == e.Seq {
			i := slices.IndexFunc(p.Reboots, func(t underway.Reboot) bool { return t.Entry.Node == e.Node && t.Entry.Seq == e.Seq })
			if i < 0 {
				return c.reboot(held)
			}
			return c.reboot(held).CrowdOut(p.Reboots[i].CrowdedOut)
		}
	}
	for _, n := range c.Unlisted {
		if own := c.entry(n); own.Seq == e.Seq {
			return c.reboot(own)
		}
	}
	return underway.Reboot{}
}

// Refused returns how many nodes hold a slot while the API server refuses the write that is due,
// and a message about them.
func (p *Plan) Refused() (nodes int, text string) {
	var others []string
	for _, t := range p.Reboots {
		switch {
		case t.Refused == "":
			continue
		case nodes == 0:
			text = fmt.Sprintf("node %s has held a slot since %s, and the API server refuses the manager's writes about its reboot: %s; %s",
				t.Entry.Node, timing.Instant(t.Entry.At.Time), t.Refused, t.KeepsSlot())
		default:
			others = append(others, t.Entry.Node)
		}
		nodes++
	}
	if len(others) > 0 {
		text += "; the same holds for " + message.Some(others)
	}
	return nodes, text
}
