// Package protocol defines the record on a Node, and every move of the manager and the agent on it. A grant
// permits one reboot of one node. It takes one slot while it is in the ledger, which is in the status of
// the policy. A policy that shares the limit of another policy has its grants in the ledger of that
// policy, so that one compare-and-swap decides about both.
//
//  1. Enter: the manager writes a new entry into the ledger.
//  2. Publish: the manager writes the grant annotation on the Node.
//  3. Listed, Start: the agent reads the ledger, cordons the node, and writes progress Draining.
//  4. Commit: after the drain the agent writes progress Rebooting, and only then calls logind.
//     NoteReboot: the manager records that in the ledger. Recall: the agent calls once more. NoteBoot: the agent finds that the
//     host has booted under the same boot ID.
//  5. Finish: after the boot the manager undoes the agent's cordon (Uncordons) and ends the grant.
//  6. Cancel, Abort: before Commit the manager cancels the grant, or the agent gives up. Retreat: after Commit the agent gives up,
//     because logind does not reboot the host. Repair: the agent replaces a progress that cannot be read.
//  7. Releasable, Overtaken, Gone: the agent cannot act on the entry any more, so it leaves the ledger.
//  8. Withdraw, Withdrawn: a grant that the API server keeps from the Node is withdrawn in the ledger.
//  9. Adopt: a ledger that has lost an outstanding grant takes it back.
//  10. BeginHooks: hooks run before Publish and before Finish. Grant.Without: the manager removes what a
//     grant has left.
//
// Each write carries the resourceVersion of the read from which the move was computed. search_test.go
// searches every interleaving.
package protocol

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Record is what a Node shows of its reboot. A part is nil if its annotation is absent or
// unreadable.
type Record struct {
	// UID is the UID of the Node.
	UID types.UID
	// Grant is the manager's permission, and Progress records what the agent did with it.
	Grant    *Grant
	Progress *Progress
	// Hooks is the phase of hooks of the node, for any policy. An unreadable phase begins again.
	Hooks *HookPhase
	// GrantErr says why the grant is unreadable, so that nothing is permitted. It is nil if the
	// grant is readable or absent.
	GrantErr error
	// ProgressErr says why the progress is unreadable, so that the agent may be anywhere. It is nil
	// if the progress is readable or absent.
	ProgressErr error
}

// RecordOf reads the record of a Node as far as possible. What is unreadable permits nothing.
func RecordOf(node *corev1.Node) Record {
	r := Record{UID: node.UID}
	r.Grant, r.GrantErr = ParseGrant(node.Annotations)
	r.Progress, r.ProgressErr = ParseProgress(node.Annotations)
	r.Hooks, _ = ParseHookPhase(node.Annotations)
	return r
}

// Seen returns the highest sequence number in the record. A new grant must be above it.
func (r Record) Seen() int64 {
	seen := max(r.GrantSeq(), r.progressSeq())
	if r.Hooks != nil {
		seen = max(seen, r.Hooks.Seq)
	}
	return seen
}

// GrantSeq returns the number of the grant in the record, or 0 if there is none.
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

// Ended reports whether the manager has ended the attempt that the progress shows: its grant is Finished, or a later one replaced it.
func (r Record) Ended() bool {
	seq := r.progressSeq()
	return r.Finished(seq) || r.GrantSeq() > seq
}

// Outstanding reports whether the record may still lead to a reboot, or holds the node cordoned, so
// that it must be in a ledger.
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

// Done reports whether a node with an active grant is done with it, because it runs another boot or
// the agent has aborted, while the manager has not written the end yet.
func (r Record) Done(bootID string) bool {
	g := r.Grant
	return g != nil && g.State == GrantActive && (g.BootID != bootID || r.In(g.Seq, PhaseAborted))
}

// Last returns the progress so far. A Node without one has acted on no number.
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

// Holds reports whether the record is the outstanding one of an entry that a ledger takes back.
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

// Uncordons reports whether the end of an attempt undoes the cordon of the node: only if the agent
// has cordoned it in the attempt, and the cordon is still the agent's own. The Node is read live,
// because no cache keeps managedFields.
func Uncordons(node *corev1.Node) bool { return RecordOf(node).Last().Cordoned && cordonIsAgents(node) }

// cordonIsAgents reports whether the node is cordoned and the cordon is still the agent's own, by
// managedFields. An administrator who uncordons the node and cordons it again owns the field from then on,
// and the node stays cordoned.
//
// The agent writes the cordon together with its progress. If the agent still owns its progress but not the
// cordon, somebody else has taken the cordon over. An ancient entry names no manager. If no other manager
// has the field, or there are no managedFields, the record on the Node decides. It takes an
// administrator's cordon for the agent's in two cases only: both writes have become ancient, or the
// administrator's has and the node is past the point of no return.
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

// has reports whether a field of this name belongs to the manager of an entry.
func has(entry metav1.ManagedFieldsEntry, field string) bool {
	return entry.FieldsV1 != nil && strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:`+field+`"`)
}
