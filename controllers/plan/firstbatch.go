package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/message"
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

// scaleFirst computes concurrency.firstBatch in nodes, once all nodes are counted.
func scaleFirst(f *fleet) (err error) {
	if first := f.Policy.Spec.FirstBatch(); first != nil {
		if f.first, err = Limit(first.NodesOrDefault(), len(f.selected)); err != nil {
			return fmt.Errorf("spec.concurrency.firstBatch.nodes: %w", err)
		}
	}
	return nil
}

// firstBatchOf returns how far the run has come, from its counts in the status and the reboots that end
// with this plan. Until it grows, the nodes that have come back still count, so that no node follows
// them.
func firstBatchOf(f *fleet, reboots []underway.Reboot) firstBatch {
	if f.first == 0 {
		return firstBatch{}
	}
	b := firstBatch{nodes: f.first, soak: f.Policy.Spec.FirstBatch().Soak.Duration}
	var run v1alpha1.RunStatus
	if f.Policy.Status.Run != nil {
		run = *f.Policy.Status.Run
	}
	var back []v1alpha1.PastReboot
	rebooted, failed := run.Rebooted, run.Failed
	history := f.Policy.Status.History
	ended := (&Plan{Reboots: reboots}).ended(history, f.Now)
	for i, past := range slices.Concat(history, ended) {
		switch isNew := i >= len(history); {
		case past.Seq <= run.Seq, !isNew && f.Policy.Status.Run == nil:
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
	// The history holds the last reboots. Those of the first nodes that it has lost are long over.
	lost := int(rebooted) - len(back)
	soakFirst(f, &b, back[:max(0, min(int(b.nodes)-lost, len(back)))])
	if !b.down && !f.Now.Before(b.until) {
		return firstBatch{}
	}
	return b
}

// soakFirst finds the node that soaks longest among the first ones, which are back.
func soakFirst(f *fleet, b *firstBatch, back []v1alpha1.PastReboot) {
	for _, past := range back {
		until, down := past.EndedAt.Add(b.soak), false
		if i := slices.IndexFunc(f.selected, func(n *record.Node) bool { return n.Name == past.Node }); i >= 0 {
			until, down = soaks(f.selected[i], past.EndedAt.Time, b.soak)
		}
		if down && !b.down || down == b.down && until.After(b.until) {
			b.last, b.until, b.down = past.Node, until, down
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
func (f firstBatch) waits(c *choice) *block.Block {
	switch {
	case f.nodes == 0 || f.limit > 0:
		return nil
	case f.down:
		return block.New(v1alpha1.ReasonSpacing, forItsTurn+"%s", f.message())
	}
	return block.New(v1alpha1.ReasonSpacing, forItsTurn+"%s until %s", f.message(), c.instant(f.until)).EndsAt(f.until)
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

// batch returns the limit of the run for the status, or nil if the run has grown or nothing waits.
func (f firstBatch) batch(p *Plan) *Batch {
	if f.nodes == 0 || len(p.Ledger())+len(p.Blocked) == 0 {
		return nil
	}
	return &Batch{Limit: f.limit, Message: f.message()}
}
