package protocol

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// isOf reports whether the record belongs to the Node of an entry, by UID. A Node that was deleted
// and registered again has forgotten which grants it has seen. If only the name counted, a manager
// with an old ledger could publish the grant of an entry that was released long ago.
func (r Record) isOf(e v1alpha1.LedgerEntry) bool { return e.NodeUID == r.UID }

// Busy reports whether the node still acts on an older grant, from the policy that governed it
// before. A newer grant must not replace it, because that reboot could then never be finished.
func (r Record) Busy(seq int64) bool {
	return r.Grant != nil && r.Grant.Seq < seq && r.progressSeq() < seq && r.Outstanding()
}

// unseen reports whether the node has not seen grant seq yet and is free for it.
func (r Record) unseen(seq int64) bool { return r.GrantSeq() < seq && !r.Busy(seq) }

// Publish returns the grant of a ledger entry, and whether the manager may write it to the Node.
// The Node must not have seen this grant or a newer one, and must have ended all older ones. A
// withdrawn grant may be published only if its agent has passed the point of no return, because
// otherwise the reboot could not be finished.
func Publish(r Record, e v1alpha1.LedgerEntry, ledger string, now time.Time) (Grant, bool) {
	holds := e.WithdrawnAt == nil || r.In(e.Seq, PhaseRebooting)
	return grantOf(e, ledger, GrantActive, now), holds && r.isOf(e) && r.unseen(e.Seq)
}

// Cancel returns the cancelled grant with its reason, and whether it may be written. It may not be
// written past the point of no return, or if an unreadable progress hides whether the node is past
// it.
func Cancel(r Record, e v1alpha1.LedgerEntry, ledger string, reason v1alpha1.Reason, message string, now time.Time) (Grant, bool) {
	active := r.Shows(e.Seq) && r.Grant.State == GrantActive
	stoppable := active && r.ProgressErr == nil && !r.In(e.Seq, PhaseRebooting)
	next := r.ended(e, ledger, GrantCancelled, now)
	next.Reason, next.Message = reason, message
	return next, r.isOf(e) && (r.unseen(e.Seq) || stoppable)
}

// Finish returns the finished grant of a proved reboot, and whether it may be written. A reboot is
// proved if the agent passed the point of no return and the boot ID has changed since. It is also
// proved if the agent found that the host booted under the same boot ID. Finish also ends a grant
// that somebody cancelled afterwards, because the node is up and must not stay cordoned.
func Finish(r Record, e v1alpha1.LedgerEntry, ledger, bootID string, now time.Time) (Grant, bool) {
	unfinished := r.Shows(e.Seq) && !r.Finished(e.Seq)
	proved := r.In(e.Seq, PhaseRebooting) && bootID != "" && r.Progress.HasBooted(bootID)
	return r.ended(e, ledger, GrantFinished, now), r.isOf(e) && unfinished && proved
}

// NoteReboot returns the entry with the time at which its node passed the point of no return. An
// unreadable progress counts as past it. The entry keeps that time even if the Node is deleted. If
// a progress becomes readable and shows a drain, the time is removed.
func NoteReboot(r Record, e v1alpha1.LedgerEntry, since time.Time) v1alpha1.LedgerEntry {
	switch {
	case r.In(e.Seq, PhaseDraining):
		e.RebootingAt = nil
	case e.RebootingAt == nil && (r.In(e.Seq, PhaseRebooting) || r.ProgressErr != nil):
		e.RebootingAt = &metav1.Time{Time: since}
	}
	return e
}

// Releasable reports whether an entry may leave the ledger because the agent can never act on it
// again.
func Releasable(r Record, e v1alpha1.LedgerEntry) bool {
	switch {
	case !r.isOf(e):
		return false // see Gone
	case r.In(e.Seq, PhaseAborted):
		return true
	case r.ProgressErr != nil || r.Grant == nil || r.Grant.Seq < e.Seq:
		return false
	case r.Grant.Seq > e.Seq:
		// A newer grant replaces this one only after this one is over. The ledger may not show that
		// yet, and the progress may still show the reboot.
		return !r.In(e.Seq, PhaseDraining)
	case r.Grant.State == GrantCancelled:
		return r.progressSeq() != e.Seq
	default:
		return r.Grant.State == GrantFinished
	}
}

// Withdraw returns the entry marked as withdrawn, and whether it may be withdrawn. The node must
// not show any trace of the grant. Only the ledger changes.
func Withdraw(r Record, e v1alpha1.LedgerEntry, now time.Time) (v1alpha1.LedgerEntry, bool) {
	may := unpublished(r, e)
	e.WithdrawnAt = &metav1.Time{Time: now}
	return e, may
}

func unpublished(r Record, e v1alpha1.LedgerEntry) bool {
	return r.isOf(e) && r.GrantSeq() < e.Seq && r.progressSeq() != e.Seq && r.ProgressErr == nil
}

// Withdrawn reports whether an entry may leave the ledger because its grant was withdrawn before
// the node showed it. To prove that, the Node must be read live after a ledger with withdrawnAt was
// read. A stopped leader may still publish the grant, but the agent reads the ledger before it
// begins, and finds withdrawnAt or no entry.
func Withdrawn(r Record, e v1alpha1.LedgerEntry) bool {
	return e.WithdrawnAt != nil && unpublished(r, e)
}

// Adopt returns the entry for an outstanding record that the ledger does not hold. If the agent has
// not begun, the new entry is withdrawn from the start. A stopped leader may have published the
// grant after its entry was released, and another node may have the slot.
func Adopt(r Record, node string, now time.Time) v1alpha1.LedgerEntry {
	e := r.Entry(node)
	if r.progressSeq() < e.Seq {
		e.WithdrawnAt = &metav1.Time{Time: now}
	}
	return e
}

// Overtaken reports whether the node shows a grant with the same number from the ledger of another
// policy. This can happen because ledgers count independently and a node may move between policies.
// The grant of the entry can then never be published, and the progress belongs to the other grant.
func Overtaken(r Record, e v1alpha1.LedgerEntry, ledger string) bool {
	return r.isOf(e) && r.Shows(e.Seq) && r.Grant.LedgerName() != ledger
}

// Gone reports whether the Node of an entry was deleted and another Node has its name, so that no
// agent can act on the entry. To prove that, the Node must be read live after the ledger: an
// earlier read may show a Node from before the entry.
func Gone(r Record, e v1alpha1.LedgerEntry) bool { return !r.isOf(e) }

// Enter returns a new entry for a node. The ledger argument is the highest number that the ledger
// has used.
func Enter(ledger int64, r Record, node, bootID string, now time.Time) v1alpha1.LedgerEntry {
	return v1alpha1.LedgerEntry{Node: node, NodeUID: r.UID, Seq: nextSeq(ledger, r), BootID: bootID, At: metav1.NewTime(now)}
}

// nextSeq returns the number of a new grant. It is higher than every number that the ledger and the
// node have seen.
func nextSeq(ledger int64, r Record) int64 { return max(ledger, r.Seen()) + 1 }

// grantOf returns the grant of an entry in the ledger of a policy. If the entry names another
// policy, which shares the limit, that policy is the one that granted it.
func grantOf(e v1alpha1.LedgerEntry, ledger string, state GrantState, now time.Time) Grant {
	g := Grant{Policy: ledger, Seq: e.Seq, BootID: e.BootID, State: state, At: metav1.NewTime(now)}
	if e.Policy != "" {
		g.Policy, g.Ledger = e.Policy, ledger
	}
	return g
}

// BeginHooks returns the phase of hooks that an entry of a policy begins in this boot.
func BeginHooks(
	e v1alpha1.LedgerEntry, policy, bootID string, stage v1alpha1.HookStage, hooks []v1alpha1.AnnotationKey, now time.Time,
) HookPhase {
	return HookPhase{Policy: policy, Seq: e.Seq, BootID: bootID, Stage: stage, Hooks: hooks, At: metav1.NewTime(now)}
}

// Covers reports whether the phase is the same as another one and waits for all of its hooks. The
// times at which they began may differ. It is false for nil.
func (h *HookPhase) Covers(other HookPhase) bool {
	return h != nil && h.Policy == other.Policy && h.Seq == other.Seq && h.BootID == other.BootID && h.Stage == other.Stage &&
		!slices.ContainsFunc(other.Hooks, func(key v1alpha1.AnnotationKey) bool { return !slices.Contains(h.Hooks, key) })
}

// Without returns the grant without the autoscaler annotations, the load balancer label or the
// remediation label that were removed from the Node.
func (g Grant) Without(annotations, exclusion, remediation bool) Grant {
	if annotations {
		g.Annotations = nil
	}
	if exclusion {
		g.Excluded = false
	}
	if remediation {
		g.Unremediated = false
	}
	return g
}

// ended returns a grant that permits nothing. If the node shows the grant, its policy and ledger
// keep their names, because the manager finds the ledger by them.
func (r Record) ended(e v1alpha1.LedgerEntry, ledger string, state GrantState, now time.Time) Grant {
	g := grantOf(e, ledger, state, now)
	if r.Shows(e.Seq) {
		g.Policy, g.Ledger = r.Grant.Policy, r.Grant.Ledger
	}
	return g
}
