package slots

import (
	"fmt"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/queue"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// firstBatch tracks the beginning of a run under concurrency.firstBatch. It is zero if the policy does
// not set that field, or once the run has grown to maxUnavailable.
type firstBatch struct {
	// nodes is the number of nodes with which the run begins. They must be back for soak.
	nodes int32
	soak  time.Duration
	// limit is the number of nodes that may still be down at once, or 0 while the first ones soak.
	limit int32
	// failed is true if an attempt of the run has failed, so that it does not grow.
	failed bool
	// until is the time when the soak ends, and last is the node that soaks longest. If down is true,
	// that node is not Ready, and the soak starts over once it is.
	until time.Time
	last  string
	down  bool
}

// Batch is the limit of a run that has not grown to maxUnavailable yet, and the reason.
type Batch struct {
	Limit   int32
	Message string
}

// firstBatchOf returns how far the run has come, from its counts in the status, the reboots that end
// with this plan, and what Nodes show of those that the history does not hold any more. Until it grows,
// the nodes that have come back still count, so that no node follows them.
func firstBatchOf(r Rules, reboots []underway.Reboot, selected []*record.Node) firstBatch {
	if r.Limits.First == 0 {
		return firstBatch{}
	}
	b := firstBatch{nodes: r.Limits.First, soak: r.Policy.Spec.FirstBatch().Soak.Duration}
	var run v1alpha1.RunStatus
	if r.Policy.Status.Run != nil {
		run = *r.Policy.Status.Run
	}
	var back []v1alpha1.PastReboot
	rebooted, failed := run.Rebooted, run.Failed
	history := r.Policy.Status.History
	ended := underway.Ended(reboots, history, r.Now)
	for i, past := range slices.Concat(history, ended) {
		switch isNew := i >= len(history); {
		case past.Seq <= run.Seq, !isNew && r.Policy.Status.Run == nil:
		case past.Result == v1alpha1.RebootSucceeded:
			back = append(back, past)
			if isNew {
				rebooted++
			}
		case isNew:
			failed++
		}
	}
	overdue := func(t underway.Reboot) bool { return !t.FailedAt.IsZero() }
	switch {
	case failed > 0 || slices.ContainsFunc(reboots, overdue):
		b.failed, b.limit = true, b.nodes
		return b
	case rebooted < b.nodes:
		b.limit = b.nodes - rebooted
		return b
	}
	if r.Policy.Status.Run != nil {
		back = withShown(r, back, selected, run.Seq)
	}
	gone := max(0, int(rebooted)-len(back)) // they have a later grant, or no Node any more
	b.soaks(selected, back[:max(0, min(int(b.nodes)-gone, len(back)))])
	if !b.down && !r.Now.Before(b.until) {
		return firstBatch{}
	}
	return b
}

// withShown adds the reboots after number seq that only Nodes show, and sorts all by their end.
func withShown(r Rules, back []v1alpha1.PastReboot, selected []*record.Node, seq int64) []v1alpha1.PastReboot {
	for _, n := range selected {
		known := func(past v1alpha1.PastReboot) bool { return past.Node == n.Name }
		if at := n.FinishedAt(r.Policy.Name, r.Now); !at.IsZero() && n.GrantSeq() > seq && !slices.ContainsFunc(back, known) {
			back = append(back, v1alpha1.PastReboot{Node: n.Name, EndedAt: n.Grant.At})
		}
	}
	slices.SortStableFunc(back, func(a, b v1alpha1.PastReboot) int { return a.EndedAt.Compare(b.EndedAt.Time) })
	return back
}

// soaks finds the node that soaks longest among the first ones, which are back.
func (f *firstBatch) soaks(selected []*record.Node, back []v1alpha1.PastReboot) {
	for _, past := range back {
		until, down := past.EndedAt.Add(f.soak), false
		if i := slices.IndexFunc(selected, func(n *record.Node) bool { return n.Name == past.Node }); i >= 0 {
			until, down = queue.Soaks(selected[i], past.EndedAt.Time, f.soak)
		}
		if down && !f.down || down == f.down && until.After(f.until) {
			f.last, f.until, f.down = past.Node, until, down
		}
	}
}

// share returns the share of the first nodes, or nil if the run has none.
func (f firstBatch) share() *share {
	if f.limit == 0 {
		return nil
	}
	return &share{limit: int(f.limit), used: map[string]string{}, full: forItsTurn + f.message()}
}

// waits returns why no node may go while the first nodes soak, or nil.
func (f firstBatch) waits(zone *time.Location) *block.Block {
	switch {
	case f.nodes == 0 || f.limit > 0:
		return nil
	case f.down:
		return block.New(v1alpha1.ReasonSpacing, forItsTurn+"%s", f.message())
	}
	return block.New(v1alpha1.ReasonSpacing, forItsTurn+"%s until %s", f.message(), timing.InstantIn(f.until, zone)).EndsAt(f.until)
}

// message says how many nodes may be down and why. It stays the same while the first nodes reboot.
func (f firstBatch) message() string {
	switch first := message.Count(int(f.nodes), "node", "nodes"); {
	case f.failed:
		return fmt.Sprintf("an attempt has failed, so at most %s may be unavailable at once until the run is over", first)
	case f.limit > 0:
		each := "it"
		if f.nodes > 1 {
			each = "each"
		}
		return fmt.Sprintf("the run begins with %s, and the others wait until %s is back and has soaked for %s", first, each, f.soak)
	case f.down:
		return fmt.Sprintf("%s, one of the first nodes of the run, is not Ready; the others wait until it has been back for %s", f.last, f.soak)
	}
	return fmt.Sprintf("%s, one of the first nodes of the run, soaks", f.last)
}

// Batch returns the limit of the run for the status, or nil if the run has grown.
func (s *Slots) Batch() *Batch {
	if s.first.nodes == 0 {
		return nil
	}
	return &Batch{Limit: s.first.limit, Message: s.first.message()}
}
