// Package protocol defines the record on a Node, and every move of the manager and the agent on it.
// A grant permits one reboot of one node. It takes one slot while it is in the ledger, which is in
// the status of the policy. If a policy shares the limit of another policy, its grants are in that
// policy's ledger, so that one compare-and-swap decides about both.
//
//  1. Enter: the manager writes a new entry into the ledger.
//  2. Publish: the manager writes the grant annotation on the Node.
//  3. Listed, Start: the agent reads the ledger, cordons the node, and writes progress Draining.
//  4. Commit: after the drain the agent writes progress Rebooting, and only then calls logind.
//     NoteReboot: the manager records that in the ledger. Recall: the agent calls logind again.
//     NoteBoot: the agent finds that the host has rebooted under the same boot ID.
//  5. Finish: after the boot the manager undoes the agent's cordon (Uncordons) and ends the grant.
//  6. Cancel, Abort: before Commit the manager cancels the grant, or the agent gives up.
//     Retreat: after Commit the agent gives up because logind does not reboot the host.
//     Repair: the agent replaces a progress that cannot be read.
//  7. Releasable, Overtaken, Gone: the agent cannot act on the entry any more, so the entry
//     leaves the ledger.
//  8. Withdraw, Withdrawn: the manager withdraws a grant in the ledger because the API server
//     does not let it write the Node.
//  9. Adopt: a ledger takes back an outstanding grant that it has lost.
//  10. BeginHooks: hooks run before Publish and before Finish. Grant.Without: the manager removes
//     what a grant has left on the Node.
//
// Each write carries the resourceVersion of the object from which the move was computed.
// search_test.go searches every interleaving.
package protocol

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Record is the state of a reboot as a Node shows it. A part is nil if its annotation is absent or
// unreadable.
type Record struct {
	// UID is the UID of the Node.
	UID types.UID
	// Grant is the manager's permission. Progress records what the agent did with it.
	Grant    *Grant
	Progress *Progress
	// Hooks is the node's phase of hooks, for any policy. It is nil and begins again if it is
	// unreadable.
	Hooks *HookPhase
	// GrantErr says why the grant is unreadable, so that nothing is permitted. It is nil if the
	// grant is readable or absent.
	GrantErr error
	// ProgressErr says why the progress is unreadable, so that the agent may be in any phase. It is
	// nil if the progress is readable or absent.
	ProgressErr error
}

// RecordOf reads the record of a Node as far as possible. Unreadable parts permit nothing.
func RecordOf(node *corev1.Node) Record {
	r := Record{UID: node.UID}
	r.Grant, r.GrantErr = ParseGrant(node.Annotations)
	r.Progress, r.ProgressErr = ParseProgress(node.Annotations)
	// No reboot depends on the error: the manager replaces an unreadable phase with a new one, so
	// that hooks run once more rather than being skipped.
	r.Hooks, _ = ParseHookPhase(node.Annotations)
	return r
}

// Seen returns the highest number in the record. A new grant must have a higher one.
func (r Record) Seen() int64 {
	highest := max(r.GrantSeq(), r.progressSeq())
	if r.Hooks != nil {
		highest = max(highest, r.Hooks.Seq)
	}
	return highest
}

// GrantSeq returns the number of the grant in the record, or 0 without a grant.
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

// Shows reports whether the record shows grant seq.
func (r Record) Shows(seq int64) bool { return r.Grant != nil && r.Grant.Seq == seq }

// In reports whether the agent acts on grant seq and is in the given phase.
func (r Record) In(seq int64, phase Phase) bool {
	return r.Progress != nil && r.Progress.Seq == seq && r.Progress.Phase == phase
}

// Finished reports whether grant seq has ended with its reboot, and the node is back in service.
func (r Record) Finished(seq int64) bool { return r.Shows(seq) && r.Grant.State == GrantFinished }

// Ended reports whether the manager has ended the attempt that the progress shows: its grant is
// Finished, or a later grant replaced it.
func (r Record) Ended() bool {
	seq := r.progressSeq()
	return r.Finished(seq) || r.GrantSeq() > seq
}

// Outstanding reports whether the record may still lead to a reboot or keeps the node cordoned.
// Such a record must be in a ledger.
func (r Record) Outstanding() bool {
	if r.Grant == nil {
		return r.Progress != nil && r.Progress.Phase != PhaseAborted
	}
	switch seq := r.Grant.Seq; r.Grant.State {
	case GrantActive:
		return !r.In(seq, PhaseAborted)
	case GrantCancelled:
		return r.In(seq, PhaseDraining) || r.In(seq, PhaseRebooting)
	case GrantFinished:
	}
	return false
}

// Done reports whether a node is done with its active grant, but the manager has not ended the
// grant yet. A node is done if it runs another boot or the agent has aborted.
func (r Record) Done(bootID string) bool {
	g := r.Grant
	return g != nil && g.State == GrantActive && (g.BootID != bootID || r.In(g.Seq, PhaseAborted))
}

// Last returns the current progress, or the zero Progress if the Node has none that is readable.
func (r Record) Last() Progress {
	if r.Progress == nil {
		return Progress{}
	}
	return *r.Progress
}

// Entry returns the ledger entry that an outstanding record should have.
func (r Record) Entry(node string) v1alpha1.LedgerEntry {
	if g := r.Grant; g != nil {
		return v1alpha1.LedgerEntry{Node: node, NodeUID: r.UID, Seq: g.Seq, BootID: g.BootID, At: g.At}
	}
	p := r.Progress
	return v1alpha1.LedgerEntry{Node: node, NodeUID: r.UID, Seq: p.Seq, BootID: p.BootID, At: p.At}
}

// Holds reports whether the record is outstanding and matches an entry that a ledger takes back.
func (r Record) Holds(e v1alpha1.LedgerEntry) bool {
	if !r.Outstanding() {
		return false
	}
	own := r.Entry(e.Node)
	return own.NodeUID == e.NodeUID && own.Seq == e.Seq && own.BootID == e.BootID
}

// ownerAncient is the field manager to which the API server assigns the oldest updates once more
// than ten managers have written.
const ownerAncient = "ancient-changes"

// Uncordons reports whether the end of an attempt undoes the cordon of the node. It does so only if
// the agent cordoned the node in this attempt and still owns the cordon. The Node must be read
// live, because caches do not keep managedFields.
func Uncordons(node *corev1.Node) bool { return RecordOf(node).Last().Cordoned && cordonIsAgents(node) }

// cordonIsAgents reports whether the node is cordoned and the agent still owns the cordon according
// to managedFields. If an administrator uncordons the node and cordons it again, the administrator
// owns the field from then on, and the node stays cordoned.
//
// The agent writes the cordon together with its progress. If the agent still owns its progress but
// not the cordon, somebody else has taken the cordon over. An ancient entry does not name a
// manager. If no other manager owns the field, or managedFields are absent, the record on the Node
// decides. It then mistakes an administrator's cordon for the agent's in two cases only: both
// writes have become ancient, or the administrator's has and the node is past the point of no
// return.
func cordonIsAgents(node *corev1.Node) bool {
	if !node.Spec.Unschedulable {
		return false
	}
	others := false
	for _, entry := range node.ManagedFields {
		cordon, agents := has(entry, "unschedulable"), entry.Manager == v1alpha1.FieldOwnerAgent
		switch {
		case cordon && agents:
			return true
		case cordon && entry.Manager != ownerAncient, agents && entry.Subresource == "" && has(entry, v1alpha1.AnnotationProgress):
			others = true
		}
	}
	return !others
}

// has reports whether the manager of an entry owns a field of this name.
func has(entry metav1.ManagedFieldsEntry, field string) bool {
	return entry.FieldsV1 != nil && strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:`+field+`"`)
}

// FailedTry reports whether the attempt was a try that failed. Its back-off ends early if the
// PodDisruptionBudget allows evictions again.
func (p Progress) FailedTry() bool {
	return p.Phase == PhaseAborted && p.Try && p.Reason == v1alpha1.ReasonUndrainablePod
}

// HasBooted reports whether the host, whose current boot ID is given, has rebooted since the
// attempt began.
func (p Progress) HasBooted(bootID string) bool { return p.BootID != bootID || p.Rebooted }
