package underway

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Action is the next action for one entry of the ledger.
type Action string

const (
	// Wait means to wait for the agent or for time to pass.
	Wait Action = "Wait"
	// PublishGrant writes the grant on the Node.
	PublishGrant Action = "Publish"
	// CancelGrant cancels the grant.
	CancelGrant Action = "Cancel"
	// BeginHooks labels the node for a phase of hooks, and removes stale answers.
	BeginHooks Action = "BeginHooks"
	// NoteTaint records when a startup taint was first seen on the node, or that it is gone.
	NoteTaint Action = "NoteTaint"
	// FinishGrant puts the node back in service.
	FinishGrant Action = "Finish"
	// WithdrawGrant marks the entry in the ledger as withdrawn, because nothing can be written on
	// the Node.
	WithdrawGrant Action = "Withdraw"
	// ReleaseEntry takes the entry out of the ledger.
	ReleaseEntry Action = "Release"
)

// WritesNode reports whether the action writes the Node.
func (a Action) WritesNode() bool { return a != Wait && a != WithdrawGrant && a != ReleaseEntry }

// Reboot is one granted reboot: how far it is, and the next action.
type Reboot struct {
	Entry v1alpha1.LedgerEntry
	// Node is nil when the Node object is gone.
	Node   *record.Node
	Action Action
	// Reason and Message describe its state, or why it is cancelled.
	Reason  v1alpha1.Reason
	Message string
	// Stage is the stage whose hooks BeginHooks starts.
	Stage v1alpha1.HookStage
	// FailedAt is the time when the reboot missed its deadline, or zero if it did not. It keeps its
	// slot.
	FailedAt time.Time
	// Until is the next time at which the answer changes by itself, or zero.
	Until time.Time
	// DrainUntil is the time when drain.timeout ends the drain, or zero outside Draining. Until is
	// later: by then the agent must have answered.
	DrainUntil time.Time
	// NeedsGates reports whether the gates decide about the grant: the agent has not begun, and no
	// earlier check cancels it.
	NeedsGates bool
	// Refused is the API server's answer if it refused the write that Action needs, and empty
	// otherwise.
	Refused string
	// takesPods is the value that NoteTaint records.
	takesPods bool
	// CrowdedOut says why the limit leaves no slot for the reboot, or is nil if it is not cancelled
	// for that.
	CrowdedOut *block.Block
}

// BackAt returns when the rebooted node was back in service, or zero if it is not, or if the grant
// ended in another way.
func (t Reboot) BackAt() time.Time {
	if t.Node == nil || !t.Node.Finished(t.Entry.Seq) {
		return time.Time{}
	}
	return t.Node.Grant.At.Time
}

// Rebooting reports whether the node has passed the point of no return.
func (t Reboot) Rebooting() bool {
	return t.Node != nil && t.Node.In(t.Entry.Seq, protocol.PhaseRebooting)
}

// Lost reports whether the node did not come back from its reboot in time, or went down during its
// drain and did not finish it in time.
func (t Reboot) Lost() bool {
	return !t.FailedAt.IsZero() && (t.Rebooting() || t.Node != nil && !t.Node.Ready)
}

// Begun reports whether the agent has used the grant.
func (t Reboot) Begun() bool { return t.Node.Progress != nil && t.Node.Progress.Seq >= t.Entry.Seq }

// Begin returns the phase of hooks that BeginHooks writes.
func (t Reboot) Begin(policy *v1alpha1.RebootPolicy, now time.Time) protocol.HookPhase {
	return protocol.BeginHooks(t.Entry, policy.Name, t.Node.BootID, t.Stage, policy.Spec.HooksOrDefault().Of(t.Stage), now)
}

// Note returns the phase of hooks that NoteTaint writes. Hooks that have begun stay.
func (t Reboot) Note(policy *v1alpha1.RebootPolicy, now time.Time) protocol.HookPhase {
	phase := protocol.BeginHooks(t.Entry, policy.Name, t.Node.BootID, v1alpha1.HooksAfter, nil, now)
	if t.Node.Hooks.Covers(phase) {
		phase.Hooks = t.Node.Hooks.Hooks
	}
	phase.TakesPods = &t.takesPods
	return phase
}

// CancelMessage returns the message of a cancelled grant.
func (t Reboot) CancelMessage() string { return message.Shorten(record.MaxMessage, t.Message) }

// RebootState is the progress of a granted reboot, as shown by kubectl reboot and in the label
// phase of metrics.
type RebootState string

// These are the states, in the order in which a reboot goes through them.
const (
	// StateGranted means that the reboot is in the ledger and the agent has not begun.
	StateGranted RebootState = "Granted"
	// StateHooks means that hooks before the drain or after the boot have not approved yet.
	StateHooks RebootState = "Hooks"
	// StateDraining means that the node is cordoned and its pods are leaving.
	StateDraining RebootState = "Draining"
	// StateRebooting means that the agent has passed the point of no return.
	StateRebooting RebootState = "Rebooting"
	// StateBooted means that the boot ID is new, but the node is not Ready, its agent has not
	// reported, or a startup taint keeps pods off it.
	StateBooted RebootState = "Booted"
	// StateSettling means that the node is back and must stay so for reboot.settle.
	StateSettling RebootState = "Settling"
	// StateAborted means that the attempt is over without a reboot. The entry is about to leave the
	// ledger.
	StateAborted RebootState = "Aborted"
)

// State returns the progress of the reboot and when it entered that state. The Node must exist.
func (t Reboot) State() (RebootState, time.Time) {
	n := t.Node
	p := n.Progress
	switch {
	case t.Action == BeginHooks: // the Node still shows an earlier phase
		return StateHooks, t.Entry.At.Time
	case n.Hooks != nil && n.Hooks.Seq == t.Entry.Seq && hooked(t.Reason):
		return StateHooks, n.Hooks.At.Time
	case p == nil || p.Seq != t.Entry.Seq:
		return StateGranted, t.Entry.At.Time
	case p.Phase == protocol.PhaseDraining:
		return StateDraining, p.At.Time
	case p.Phase == protocol.PhaseAborted:
		return StateAborted, p.At.Time
	case n.BootID == "" || !p.HasBooted(n.BootID):
		return StateRebooting, p.At.Time
	case !n.Ready || n.Maintenance || record.StartupTaint(n) != "":
		return StateBooted, p.At.Time
	}
	return StateSettling, timing.Latest(n.ReadySince, n.MaintenanceSince)
}

func hooked(reason v1alpha1.Reason) bool {
	return reason == v1alpha1.ReasonWaitingForHook || reason == v1alpha1.ReasonHookFailed || reason == v1alpha1.ReasonHookTimedOut
}

// Appears reports whether the node is about to see its grant for the first time.
func (t Reboot) Appears() bool { return t.Action == PublishGrant && !t.Rebooting() }

// CrowdOut cancels a grant that the node has not seen yet, if there is a cause: the limit leaves no
// slot for it.
func (t Reboot) CrowdOut(cause *block.Block) Reboot {
	if cause != nil && t.Appears() {
		t.Action, t.Reason, t.Message, t.CrowdedOut = CancelGrant, cause.Reason, cause.Message, cause
	}
	return t
}

// Refusal is an answer of the API server that refused a write about a granted reboot. An admission
// policy or a webhook may refuse the writes to a single Node.
type Refusal struct {
	Answer string
	// Since is the time of the first refusal in a row, and At the time of Answer.
	Since, At time.Time
	// Removed is true if the API server accepts the grant but another program removes it from the
	// Node again.
	Removed bool
}

// text returns the answer in one line of bounded length.
func (r Refusal) text() string { return message.Shorten(record.MaxMessage, r.Answer) }

// KeepsSlot says how long a node that refuses all writes keeps its slot.
func (t Reboot) KeepsSlot() string {
	switch {
	case t.Action == WithdrawGrant:
		return "the grant is withdrawn, which frees the slot"
	case !t.Until.IsZero():
		return "the grant will be withdrawn " + timing.Instant(t.Until) + ", which frees the slot"
	}
	return "the node keeps its slot until the write is accepted or the Node is deleted"
}
