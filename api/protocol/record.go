// Package protocol is the record on a Node, and every move of the manager and the agent on it. A grant permits one reboot of one
// node. It takes one slot while it is in the ledger, which is in the policy's status. A policy that shares the limit of another one
// has its grants in that one's ledger, so that one compare-and-swap decides about both.
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
//  10. BeginHooks: before Publish and before Finish the manager asks the hooks. Grant.Without: it removes what a grant has left.
//
// Each write carries the resourceVersion of what the move was computed from. search_test.go searches every interleaving.
package protocol

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Record is what a Node shows of its reboot. Each part is nil where the annotation is absent or cannot be read.
type Record struct {
	// UID is that of the Node.
	UID types.UID
	// Grant is the manager's permission, and Progress is what the agent did with it.
	Grant    *Grant
	Progress *Progress
	// Hooks is the phase of hooks that the node is in, whichever policy's. One that cannot be read begins again.
	Hooks *HookPhase
	// GrantErr states why the grant cannot be read: there is no permission. Nil: it can, or there is none.
	GrantErr error
	// ProgressErr states why the progress cannot be read: the agent may be anywhere. Nil: it can, or there is none.
	ProgressErr error
}

// RecordOf reads the record of a Node. It reads as far as it can: what cannot be read is no permission.
func RecordOf(node *corev1.Node) Record {
	r := Record{UID: node.UID}
	r.Grant, r.GrantErr = ParseGrant(node.Annotations)
	r.Progress, r.ProgressErr = ParseProgress(node.Annotations)
	r.Hooks, _ = ParseHookPhase(node.Annotations)
	return r
}

// Seen is the highest sequence number the record shows; a new grant must be above it.
func (r Record) Seen() int64 {
	seen := max(r.GrantSeq(), r.progressSeq())
	if r.Hooks != nil {
		seen = max(seen, r.Hooks.Seq)
	}
	return seen
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

// Shows reports whether the record shows grant seq.
func (r Record) Shows(seq int64) bool { return r.Grant != nil && r.Grant.Seq == seq }

// In reports whether the agent acts on grant seq and is in the given phase.
func (r Record) In(seq int64, phase Phase) bool {
	return r.Progress != nil && r.Progress.Seq == seq && r.Progress.Phase == phase
}

// Finished reports whether grant seq has ended with its reboot: the node is back in service.
func (r Record) Finished(seq int64) bool { return r.Shows(seq) && r.Grant.State == GrantFinished }

// Ended reports whether the manager has ended the attempt that the progress shows: its grant is Finished, or a later one replaced it.
func (r Record) Ended() bool {
	seq := r.progressSeq()
	return r.Finished(seq) || r.GrantSeq() > seq
}

// Outstanding reports whether the record may still lead to a reboot or holds the node cordoned: such a record must be in
// a ledger.
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

// Done reports whether a node that shows an active grant is done with it: it runs another boot, or the agent has aborted. The
// manager has not written the end yet.
func (r Record) Done(bootID string) bool {
	g := r.Grant
	return g != nil && g.State == GrantActive && (g.BootID != bootID || r.In(g.Seq, PhaseAborted))
}

// Last is the progress so far; a Node without one has acted on no seq.
func (r Record) Last() Progress {
	if r.Progress == nil {
		return Progress{}
	}
	return *r.Progress
}

// Entry is the ledger entry that an outstanding record should have.
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

// ownerAncient is the field manager to which the API server gives the oldest updates, once there are those of more than ten
// managers.
const ownerAncient = "ancient-changes"

// Uncordons reports whether the end of an attempt undoes the cordon of the node. It does so only if the agent has cordoned it in the
// attempt, and the cordon is still the agent's own. The Node is read live, because no cache keeps managedFields.
func Uncordons(node *corev1.Node) bool { return RecordOf(node).Last().Cordoned && cordonIsAgents(node) }

// cordonIsAgents reports whether the node is cordoned and the cordon is still the agent's own, by managedFields. An
// administrator who uncordons the node and cordons it again owns the field from then on, and the node stays cordoned.
//
// The agent writes the cordon together with its progress. Where its progress is still in its name and the cordon is not, another program
// or a person has taken the cordon over. An ancient entry names no manager. Where no other manager has the field, and without
// managedFields, the record on the Node decides. It takes an administrator's cordon for the agent's in two cases only. Both writes have
// become ancient, or the administrator's has and the node is past the point of no return.
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

// has reports whether a field of this name, wherever it is, belongs to the manager of an entry.
func has(entry metav1.ManagedFieldsEntry, field string) bool {
	return entry.FieldsV1 != nil && strings.Contains(string(entry.FieldsV1.GetRawBytes()), `"f:`+field+`"`)
}
