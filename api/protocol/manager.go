// Package protocol is the record on a Node, and each move on it.
package protocol

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Record is what a Node shows of its reboot: the manager's grant and the agent's progress; nil where there is none.
//
// The functions of this file are the manager's half of the grant protocol. Each is one guarded transition; the caller
// writes its result with the resourceVersion of the Node it was computed from. protocol_test.go searches all
// interleavings of them with the agent's half.
type Record struct {
	Grant    *v1alpha1.Grant
	Progress *v1alpha1.Progress
	// UID is that of the Node which shows it.
	UID types.UID

	// Asked is the number of the phase of hooks the node is in, whichever policy's; 0: none.
	Asked int64
	// ProgressLost: there is a progress that cannot be read, so the agent may be anywhere.
	ProgressLost bool
}

// Seen is the highest sequence number the record shows; a new grant must be above it.
func (r Record) Seen() int64 {
	return max(r.GrantSeq(), r.progressSeq(), r.Asked)
}

// GrantSeq is the number of the grant that the record shows; 0: none.
func (r Record) GrantSeq() int64 {
	if r.Grant == nil {
		return 0
	}
	return r.Grant.Seq
}

func (r Record) progressSeq() int64 {
	if r.Progress == nil {
		return 0
	}
	return r.Progress.Seq
}

// Shows tells whether the record shows grant seq.
func (r Record) Shows(seq int64) bool { return r.Grant != nil && r.Grant.Seq == seq }

// In tells whether the agent acts on grant seq and is in the given phase.
func (r Record) In(seq int64, phase v1alpha1.Phase) bool {
	return r.Progress != nil && r.Progress.Seq == seq && r.Progress.Phase == phase
}

// Outstanding tells whether the record may still lead to a reboot or holds the node cordoned: such a record must stand
// in a ledger.
func (r Record) Outstanding() bool {
	if r.Grant == nil {
		return r.Progress != nil && r.Progress.Phase != v1alpha1.PhaseAborted
	}
	switch seq := r.Grant.Seq; r.Grant.State {
	case v1alpha1.GrantActive:
		return !r.In(seq, v1alpha1.PhaseAborted)
	case v1alpha1.GrantCancelled:
		return r.In(seq, v1alpha1.PhaseDraining) || r.In(seq, v1alpha1.PhaseRebooting)
	case v1alpha1.GrantFinished:
	}
	return false
}

// isOf tells whether the record is of the very Node that an entry was made for. A Node that was deleted and registered anew
// has forgotten which numbers it has seen, so by its name alone a manager with an old ledger would ring for an entry that is
// long released. An entry of an older release of the operator names no UID.
func (r Record) isOf(e v1alpha1.LedgerEntry) bool { return e.NodeUID == "" || e.NodeUID == r.UID }

// Busy tells whether the node is in the middle of an older grant. It is another policy's, under which the node was before
// it came to this one. Nobody could finish that reboot if a newer grant took its place.
func (r Record) Busy(seq int64) bool {
	return r.Grant != nil && r.Grant.Seq < seq && r.progressSeq() < seq && r.Outstanding()
}

// unseen tells whether the node may still be shown grant seq.
func (r Record) unseen(seq int64) bool { return r.GrantSeq() < seq && !r.Busy(seq) }

// Ring is the bell: it tells the node of a grant that stands in the ledger. Only if it is the very Node, has seen nothing as
// new, and has ended what it has seen. One that is withdrawn is published only where its agent has passed the point of no
// return: without it the reboot could not be finished.
func Ring(r Record, e v1alpha1.LedgerEntry, policy string, now time.Time) (v1alpha1.Grant, bool) {
	holds := e.WithdrawnAt == nil || r.In(e.Seq, v1alpha1.PhaseRebooting)
	return grantOf(e, policy, v1alpha1.GrantActive, now), holds && r.isOf(e) && r.unseen(e.Seq)
}

// Cancel takes the grant back. It is impossible past the point of no return, and where nobody knows whether that is past.
func Cancel(r Record, e v1alpha1.LedgerEntry, policy string, now time.Time) (v1alpha1.Grant, bool) {
	active := r.Shows(e.Seq) && r.Grant.State == v1alpha1.GrantActive
	stoppable := active && !r.ProgressLost && !r.In(e.Seq, v1alpha1.PhaseRebooting)
	return r.ended(e, policy, v1alpha1.GrantCancelled, now), r.isOf(e) && (r.unseen(e.Seq) || stoppable)
}

// Finish ends a grant whose reboot is proved: the agent had passed the point of no return, and the node's boot ID is
// another than then. Even a grant that somebody has set to Cancelled by hand since: the node is up, and must not stay
// cordoned for ever.
func Finish(r Record, e v1alpha1.LedgerEntry, policy, bootID string, now time.Time) (v1alpha1.Grant, bool) {
	unfinished := r.Shows(e.Seq) && r.Grant.State != v1alpha1.GrantFinished
	proved := r.In(e.Seq, v1alpha1.PhaseRebooting) && bootID != "" && r.Progress.BootID != bootID
	return r.ended(e, policy, v1alpha1.GrantFinished, now), r.isOf(e) && unfinished && proved
}

// Releasable tells whether an entry may leave the ledger: the agent can never act on it again.
func Releasable(r Record, e v1alpha1.LedgerEntry) bool {
	switch {
	case !r.isOf(e):
		return false // see Gone
	case r.In(e.Seq, v1alpha1.PhaseAborted):
		return true
	case r.ProgressLost || r.Grant == nil || r.Grant.Seq < e.Seq:
		return false
	case r.Grant.Seq > e.Seq:
		// A newer grant took the place of this one, which it does only when this one is over. Nobody may have noted that
		// in the ledger, and the progress may still show the reboot.
		return !r.In(e.Seq, v1alpha1.PhaseDraining)
	case r.Grant.State == v1alpha1.GrantCancelled:
		return r.progressSeq() != e.Seq
	default:
		return r.Grant.State == v1alpha1.GrantFinished
	}
}

// Unpublished reports whether the node shows no trace of an entry's grant: then the grant can be withdrawn in the ledger alone.
func Unpublished(r Record, e v1alpha1.LedgerEntry) bool {
	return r.isOf(e) && r.GrantSeq() < e.Seq && r.progressSeq() != e.Seq && !r.ProgressLost
}

// Withdrawn reports whether an entry may leave the ledger because its grant was withdrawn before the node showed it. Only a
// live reading that comes after that of the ledger, which has the mark, proves it. A stopped leader may still publish the
// grant: the agent reads the ledger after it has seen a grant and before it begins, and finds the mark, or no entry.
func Withdrawn(r Record, e v1alpha1.LedgerEntry) bool {
	return e.WithdrawnAt != nil && Unpublished(r, e)
}

// Adopt is the entry with which a ledger takes back an outstanding record that it does not hold. One that the agent has not begun
// is withdrawn from the first, because its slot may be another node's by now: a stopped leader may have published it after its
// entry was released.
func Adopt(r Record, node string, now time.Time) v1alpha1.LedgerEntry {
	e := r.Entry(node)
	if r.progressSeq() < e.Seq {
		e.WithdrawnAt = &metav1.Time{Time: now}
	}
	return e
}

// Entry is the ledger entry that an outstanding record should have.
func (r Record) Entry(node string) v1alpha1.LedgerEntry {
	if g := r.Grant; g != nil {
		return v1alpha1.LedgerEntry{Node: node, NodeUID: r.UID, Seq: g.Seq, BootID: g.BootID, At: g.At}
	}
	p := r.Progress
	return v1alpha1.LedgerEntry{Node: node, NodeUID: r.UID, Seq: p.Seq, BootID: p.BootID, At: p.At}
}

// Overtaken tells whether the node shows another policy's grant of the very number: each policy counts for itself, and a
// node may move from one to the other. The entry can never be rung any more, and the progress is not its own.
func Overtaken(r Record, e v1alpha1.LedgerEntry, policy string) bool {
	return r.isOf(e) && r.Shows(e.Seq) && r.Grant.Policy != policy
}

// Gone tells whether the Node that an entry was made for was deleted and another one has its name, so that nobody can act on the
// entry any more. Only a live reading that comes after that of the ledger proves it: one from before may be of a Node that is
// older than the entry's.
func Gone(r Record, e v1alpha1.LedgerEntry) bool { return !r.isOf(e) }

// NextSeq is the sequence number of a new grant: above every number the ledger and the node have seen.
func NextSeq(ledger int64, r Record) int64 { return max(ledger, r.Seen()) + 1 }

func grantOf(e v1alpha1.LedgerEntry, policy string, state v1alpha1.GrantState, now time.Time) v1alpha1.Grant {
	return v1alpha1.Grant{Policy: policy, Seq: e.Seq, BootID: e.BootID, State: state, At: metav1.NewTime(now)}
}

// ended is a grant that permits nothing any more. One that the node shows keeps the name of the policy that gave it, for by
// that name its own ledger knows it.
func (r Record) ended(e v1alpha1.LedgerEntry, policy string, state v1alpha1.GrantState, now time.Time) v1alpha1.Grant {
	if r.Shows(e.Seq) {
		policy = r.Grant.Policy
	}
	return grantOf(e, policy, state, now)
}
