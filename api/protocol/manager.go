package protocol

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// isOf reports whether the record is of the Node that an entry was made for, by its UID. A Node that was deleted and registered again
// has forgotten which numbers it has seen. By its name alone, a manager with an old ledger would publish the grant of an entry
// that was released long ago.
func (r Record) isOf(e v1alpha1.LedgerEntry) bool { return e.NodeUID == r.UID }

// Busy reports whether the node is in the middle of an older grant. It is another policy's, under which the node was before
// it came to this one. That reboot could not be finished if a newer grant replaced it.
func (r Record) Busy(seq int64) bool {
	return r.Grant != nil && r.Grant.Seq < seq && r.progressSeq() < seq && r.Outstanding()
}

// unseen reports whether the node may still be shown grant seq.
func (r Record) unseen(seq int64) bool { return r.GrantSeq() < seq && !r.Busy(seq) }

// Publish shows the Node a grant that is in the ledger. Only if it is the Node of the entry, has seen no grant as new, and has ended
// what it has seen. One that is withdrawn is published only where its agent has passed the point of no return: without it
// the reboot could not be finished.
func Publish(r Record, e v1alpha1.LedgerEntry, ledger string, now time.Time) (Grant, bool) {
	holds := e.WithdrawnAt == nil || r.In(e.Seq, PhaseRebooting)
	return grantOf(e, ledger, GrantActive, now), holds && r.isOf(e) && r.unseen(e.Seq)
}

// Cancel cancels the grant, and states why. It is impossible past the point of no return, and where it is unknown whether that is past.
func Cancel(r Record, e v1alpha1.LedgerEntry, ledger string, reason v1alpha1.Reason, message string, now time.Time) (Grant, bool) {
	active := r.Shows(e.Seq) && r.Grant.State == GrantActive
	stoppable := active && r.ProgressErr == nil && !r.In(e.Seq, PhaseRebooting)
	next := r.ended(e, ledger, GrantCancelled, now)
	next.Reason, next.Message = reason, message
	return next, r.isOf(e) && (r.unseen(e.Seq) || stoppable)
}

// Finish ends a grant whose reboot is proved: the agent had passed the point of no return, and the boot ID has changed since, or the
// agent has found that the host booted under the same one. Even
// a grant that was set to Cancelled by hand since: the node is up, and must not stay cordoned.
func Finish(r Record, e v1alpha1.LedgerEntry, ledger, bootID string, now time.Time) (Grant, bool) {
	unfinished := r.Shows(e.Seq) && !r.Finished(e.Seq)
	proved := r.In(e.Seq, PhaseRebooting) && bootID != "" && r.Progress.HasBooted(bootID)
	return r.ended(e, ledger, GrantFinished, now), r.isOf(e) && unfinished && proved
}

// NoteReboot is the entry with since when its node is past the point of no return, or may be because the progress cannot be read. The
// entry outlives the Node. A progress that shows the drain, once it can be read, takes that back.
func NoteReboot(r Record, e v1alpha1.LedgerEntry, since time.Time) v1alpha1.LedgerEntry {
	switch {
	case r.In(e.Seq, PhaseDraining):
		e.RebootingAt = nil
	case e.RebootingAt == nil && (r.In(e.Seq, PhaseRebooting) || r.ProgressErr != nil):
		e.RebootingAt = &metav1.Time{Time: since}
	}
	return e
}

// Releasable reports whether an entry may leave the ledger: the agent can never act on it again.
func Releasable(r Record, e v1alpha1.LedgerEntry) bool {
	switch {
	case !r.isOf(e):
		return false // see Gone
	case r.In(e.Seq, PhaseAborted):
		return true
	case r.ProgressErr != nil || r.Grant == nil || r.Grant.Seq < e.Seq:
		return false
	case r.Grant.Seq > e.Seq:
		// A newer grant took the place of this one, which it does only when this one is over. The ledger may
		// not show that yet, and the progress may still show the reboot.
		return !r.In(e.Seq, PhaseDraining)
	case r.Grant.State == GrantCancelled:
		return r.progressSeq() != e.Seq
	default:
		return r.Grant.State == GrantFinished
	}
}

// Withdraw marks an entry as withdrawn in the ledger alone. It may only where the node shows no trace of the entry's grant.
func Withdraw(r Record, e v1alpha1.LedgerEntry, now time.Time) (v1alpha1.LedgerEntry, bool) {
	may := unpublished(r, e)
	e.WithdrawnAt = &metav1.Time{Time: now}
	return e, may
}

func unpublished(r Record, e v1alpha1.LedgerEntry) bool {
	return r.isOf(e) && r.GrantSeq() < e.Seq && r.progressSeq() != e.Seq && r.ProgressErr == nil
}

// Withdrawn reports whether an entry may leave the ledger because its grant was withdrawn before the node showed it. Only a live
// reading that comes after that of the ledger, which has withdrawnAt, proves it. A stopped leader may still publish the grant. The
// agent reads the ledger after it has seen a grant and before it begins. It finds withdrawnAt, or no entry.
func Withdrawn(r Record, e v1alpha1.LedgerEntry) bool {
	return e.WithdrawnAt != nil && unpublished(r, e)
}

// Adopt is the entry with which a ledger takes back an outstanding record that it does not hold. One that the agent has not begun
// is withdrawn from the first. A stopped leader may have published it after its entry was released, and its slot may be another
// node's.
func Adopt(r Record, node string, now time.Time) v1alpha1.LedgerEntry {
	e := r.Entry(node)
	if r.progressSeq() < e.Seq {
		e.WithdrawnAt = &metav1.Time{Time: now}
	}
	return e
}

// Overtaken reports whether the node shows a grant of the same number that is in another policy's ledger. Each ledger counts for
// itself, and a node may move between them. The grant of the entry can never be published any more, and the progress is not its
// own.
func Overtaken(r Record, e v1alpha1.LedgerEntry, ledger string) bool {
	return r.isOf(e) && r.Shows(e.Seq) && r.Grant.LedgerName() != ledger
}

// Gone reports whether the Node that an entry was made for was deleted and another one has its name. No agent can act on the entry
// any more. Only a live reading that comes after that of the ledger proves it: an earlier one may be of a Node before the entry's.
func Gone(r Record, e v1alpha1.LedgerEntry) bool { return !r.isOf(e) }

// Enter is a new entry for a node, in a ledger whose highest number is given.
func Enter(ledger int64, r Record, node, bootID string, now time.Time) v1alpha1.LedgerEntry {
	return v1alpha1.LedgerEntry{Node: node, NodeUID: r.UID, Seq: nextSeq(ledger, r), BootID: bootID, At: metav1.NewTime(now)}
}

// nextSeq is the sequence number of a new grant: above every number the ledger and the node have seen.
func nextSeq(ledger int64, r Record) int64 { return max(ledger, r.Seen()) + 1 }

// grantOf is the grant of an entry in the ledger of a policy. The policy that granted is another one where that one shares the
// limit.
func grantOf(e v1alpha1.LedgerEntry, ledger string, state GrantState, now time.Time) Grant {
	g := Grant{Policy: ledger, Seq: e.Seq, BootID: e.BootID, State: state, At: metav1.NewTime(now)}
	if e.Policy != "" {
		g.Policy, g.Ledger = e.Policy, ledger
	}
	return g
}

// BeginHooks is the phase of hooks that an entry of a policy begins in this boot.
func BeginHooks(
	e v1alpha1.LedgerEntry, policy, bootID string, stage v1alpha1.HookStage, hooks []v1alpha1.AnnotationKey, now time.Time,
) HookPhase {
	return HookPhase{Policy: policy, Seq: e.Seq, BootID: bootID, Stage: stage, Hooks: hooks, At: metav1.NewTime(now)}
}

// Covers reports whether the phase is the same as another one, whenever each began, and asks all its hooks. False for nil.
func (h *HookPhase) Covers(other HookPhase) bool {
	return h != nil && h.Policy == other.Policy && h.Seq == other.Seq && h.BootID == other.BootID && h.Stage == other.Stage &&
		!slices.ContainsFunc(other.Hooks, func(key v1alpha1.AnnotationKey) bool { return !slices.Contains(h.Hooks, key) })
}

// Without is a grant that is over, once its autoscaler annotations, or its label for load balancers, are removed from the Node.
func (g Grant) Without(annotations, exclusion bool) Grant {
	if annotations {
		g.Annotations = nil
	}
	if exclusion {
		g.Excluded = false
	}
	return g
}

// ended is a grant that permits nothing any more. One that the node shows keeps the names of its policy and of its ledger: the
// ledger finds it by that name.
func (r Record) ended(e v1alpha1.LedgerEntry, ledger string, state GrantState, now time.Time) Grant {
	g := grantOf(e, ledger, state, now)
	if r.Shows(e.Seq) {
		g.Policy, g.Ledger = r.Grant.Policy, r.Grant.Ledger
	}
	return g
}
