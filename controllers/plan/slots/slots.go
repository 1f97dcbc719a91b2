// Package slots counts the slots of maxUnavailable: who holds one, who has to wait for one, and which
// nodes use them up without a reboot.
package slots

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/ledger"
	"github.com/reboot-operator/reboot-operator/controllers/plan/queue"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Rules say how many slots a policy has.
type Rules struct {
	Now    time.Time
	Policy *v1alpha1.RebootPolicy
	// Zone is the time zone of messages.
	Zone   *time.Location
	Ledger ledger.Ledger
	Rings  queue.Rings
	Limits Limits
}

// Slots are the slots of maxUnavailable while nodes are chosen.
type Slots struct {
	share
	Rules

	// own is the share of the policy's own maxUnavailable, or nil if it has none besides the shared
	// limit.
	own *share
	// first tracks the beginning of the run under concurrency.firstBatch. batch is the share of the
	// first nodes, or nil if they do not limit the run.
	first firstBatch
	batch *share
	// rings are the shares of the rings that set maxUnavailable, by the ring's number.
	rings map[int]*share
	// busy are the topology domains in which nodes are being rebooted.
	busy map[string]bool
	// lastBack is the time when the last rebooted node was back in service, or zero if none was.
	lastBack time.Time
}

// New returns slots that only the nodes of other policies hold so far. reboots are the granted reboots
// of the policy.
func New(r Rules, nodes governor.Sorted, reboots []underway.Reboot) *Slots {
	s := &Slots{
		Rules: r, share: *shareOf(r.Limits.Ledger, r.Ledger.Policy.Spec.MaxUnavailableOrDefault(), r.Ledger.Counted()),
		rings: map[int]*share{}, busy: map[string]bool{},
	}
	if r.Limits.Own != nil {
		s.own = shareOf(*r.Limits.Own, *r.Policy.Spec.OwnLimit(), " of policy "+r.Policy.Name)
	}
	s.first = firstBatchOf(r, reboots, nodes.Governed)
	s.batch = s.first.share()
	for i, limit := range r.Limits.Rings {
		ring := r.Rings.Order[i]
		s.rings[i] = shareOf(limit, *ring.MaxUnavailable, " of ring "+ring.Name)
		s.rings[i].none = fmt.Sprintf("maxUnavailable of ring %s is 0: no node of it may be rebooted", ring.Name)
	}
	for _, n := range nodes.Sharing {
		if n.Granted {
			s.used[n.Name] = holdsGrant
		} else if n.Unavailable() {
			s.used[n.Name] = why(n.Node)
		}
	}
	for _, e := range r.Ledger.Entries().Others {
		s.grant(e.Node)
	}
	s.lastBack = s.lastBackOf(nodes.Governed)
	return s
}

// all returns the shares of the policy, its shared limit and its rings.
func (s *Slots) all() []*share {
	shares := []*share{&s.share}
	for _, other := range []*share{s.own, s.batch} {
		if other != nil {
			shares = append(shares, other)
		}
	}
	return slices.AppendSeq(shares, maps.Values(s.rings))
}

// of returns the shares that a node takes a slot from. It is nil if the Node is gone.
func (s *Slots) of(n *record.Node) []*share {
	all := []*share{&s.share}
	if s.own != nil {
		all = []*share{s.own, &s.share}
	}
	if own := s.rings[s.Rings.Of(n)]; own != nil {
		all = append(all, own)
	}
	if s.batch != nil {
		all = append(all, s.batch)
	}
	return all
}

// Count counts a node if it is down or going down.
func (s *Slots) Count(n *record.Node) {
	cause := holdsGrant
	switch {
	case n.Outstanding():
	case n.Unavailable():
		cause = why(n)
	default:
		return
	}
	for _, share := range s.of(n) {
		share.used[n.Name] = cause
	}
}

// Grant counts an entry of the ledger. The node is nil if it does not exist.
func (s *Slots) Grant(name string, n *record.Node) {
	for _, share := range s.of(n) {
		share.grant(name)
	}
}

// Back notes when a rebooted node was back in service.
func (s *Slots) Back(back time.Time) { s.lastBack = timing.Latest(s.lastBack, back) }

// Take gives the node a slot.
func (s *Slots) Take(n *record.Node) {
	s.Grant(n.Name, n)
	s.Occupy(n)
}

// Occupy makes the node's topology domain busy.
func (s *Slots) Occupy(n *record.Node) { s.busy[queue.Domain(s.Policy, n)] = true }

// Busy returns the topology domains in which nodes are being rebooted.
func (s *Slots) Busy() []string { return slices.Sorted(maps.Keys(s.busy)) }

// Never reports whether the node can never get a slot.
func (s *Slots) Never(n *record.Node) bool {
	return slices.ContainsFunc(s.of(n), func(share *share) bool { return share.limit == 0 })
}

// Hold reports whether the node holds a slot under a grant of any policy.
func (s *Slots) Hold(node string) bool { return s.used[node] == holdsGrant }

// Holding returns the nodes that hold a slot under a grant of any policy, by name.
func (s *Slots) Holding() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s.used)), func(name string) bool { return !s.Hold(name) })
}

// Used returns the number of nodes that are down or going down.
func (s *Slots) Used() int { return len(s.used) }

// Exhausted blocks a node if the policy, its ring or the beginning of the run has no slot for it. A node
// that is already down takes no new slot.
func (s *Slots) Exhausted(n *record.Node) *block.Block {
	if s.Ledger.Moved {
		return block.New(v1alpha1.ReasonBudgetExhausted, forItsTurn+"spec.concurrency.shared changed, and reboots of policy %s "+
			"still count against the limit of policy %s", s.Policy.Name, s.Ledger.Policy.Name)
	}
	for _, share := range s.of(n) {
		if b := share.exhausted(n, s.Now); b != nil {
			return b
		}
	}
	return nil
}

// Spaced makes the next reboot wait while the first nodes of the run soak, and for
// concurrency.spacing after a rebooted node is back in service. Gate answers are never older than the
// shortest spacing, so they reflect the time after that reboot.
func (s *Slots) Spaced() *block.Block {
	if b := s.first.waits(s.Zone); b != nil {
		return b
	}
	spacing := s.Policy.Spec.Spacing()
	until := s.lastBack.Add(spacing)
	if spacing == 0 || s.lastBack.IsZero() || !s.Now.Before(until) {
		return nil
	}
	return block.New(v1alpha1.ReasonSpacing, "waiting for its turn: the last rebooted node has been back since %s; the next reboot may start %s",
		timing.InstantIn(s.lastBack, s.Zone), timing.InstantIn(until, s.Zone)).EndsAt(until)
}

// Crowded returns why a node that holds a grant would take down more nodes than the limit allows.
// It returns nil if it would not, or if the node is already down. Lowering a limit does not take
// grants back.
func (s *Slots) Crowded(n *record.Node) *block.Block {
	for _, share := range s.of(n) {
		down := slices.DeleteFunc(slices.Sorted(maps.Keys(share.used)), func(name string) bool { return share.used[name] == holdsGrant })
		if len(share.used) > share.limit && len(down) > 0 && !n.Unavailable() {
			return block.New(v1alpha1.ReasonBudgetExhausted, "%s; %s %s", share.full, down[0], share.used[down[0]])
		}
	}
	return nil
}

// Free takes the slot of a node away.
func (s *Slots) Free(n *record.Node) {
	for _, share := range s.of(n) {
		delete(share.used, n.Name)
	}
}

// Fill counts nodes in their order until the limits of their shares, and returns those that fit.
func (s *Slots) Fill(nodes []*record.Node) map[string]bool {
	fits, counts := map[string]bool{}, map[*share]int{}
	for _, n := range nodes {
		shares := s.of(n)
		if slices.ContainsFunc(shares, func(s *share) bool { return counts[s] >= s.limit }) {
			continue
		}
		for _, share := range shares {
			counts[share]++
		}
		fits[n.Name] = true
	}
	return fits
}

// lastBackOf returns when the last rebooted node was back in service. It reads the status, and the
// Nodes in case the status was lost. It returns the zero time if none was, or if the policy has no
// spacing.
func (s *Slots) lastBackOf(selected []*record.Node) time.Time {
	if s.Policy.Spec.Spacing() == 0 {
		return time.Time{}
	}
	last := record.LastReboot(s.Policy, s.Now)
	for _, n := range selected {
		last = timing.Latest(last, n.FinishedAt(s.Policy.Name, s.Now))
	}
	return last
}

// Holders lists the nodes that use slots, for the policy's conditions.
func (s *Slots) Holders() string {
	names := make([]string, 0, len(s.used))
	for name, why := range s.used {
		names = append(names, name+" ("+why+")")
	}
	slices.Sort(names)
	return message.Some(names)
}
