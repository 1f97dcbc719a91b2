package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Action is what is to be done next about one entry of the ledger.
type Action string

const (
	// Wait for the agent, or for time to pass.
	Wait Action = "Wait"
	// PublishGrant writes the grant on the Node.
	PublishGrant Action = "Publish"
	// CancelGrant cancels the grant.
	CancelGrant Action = "Cancel"
	// BeginHooks labels the node for a phase of hooks, and removes stale answers.
	BeginHooks Action = "BeginHooks"
	// NoteTaint notes since when a startup taint keeps pods off the node, or that it is gone.
	NoteTaint Action = "NoteTaint"
	// FinishGrant puts the node back in service.
	FinishGrant Action = "Finish"
	// WithdrawGrant marks the entry in the ledger as withdrawn, because nothing can be written on the Node.
	WithdrawGrant Action = "Withdraw"
	// ReleaseEntry takes the entry out of the ledger.
	ReleaseEntry Action = "Release"
)

// WritesNode reports whether the action writes the Node.
func (a Action) WritesNode() bool { return a != Wait && a != WithdrawGrant && a != ReleaseEntry }

// Reboot is one granted reboot: where it is, and what is to be done next about it.
type Reboot struct {
	Entry v1alpha1.LedgerEntry
	// Node is nil when the Node object is gone.
	Node   *Node
	Action Action
	// Reason and Message describe where it is, or why it is cancelled.
	Reason  v1alpha1.Reason
	Message string
	// Stage is the one whose hooks BeginHooks asks.
	Stage v1alpha1.HookStage
	// FailedAt is when the reboot overran its deadline; zero: it did not. The slot is kept all the same.
	FailedAt time.Time
	// Until is the instant at which time alone changes the answer; zero: none.
	Until time.Time
	// DrainUntil is when drain.timeout ends the drain: earlier than Until, by when the agent must have answered. Zero: the
	// phase is not Draining.
	DrainUntil time.Time
	// NeedsGates reports whether nothing but the gates, or nothing at all, cancels a grant that the agent has not begun to use.
	NeedsGates bool
	// Refused is what the API server answered when it refused the write that Action asks for. Empty: it did not.
	Refused string
	// takesPods is what NoteTaint notes.
	takesPods bool
	// crowdedOut is why it is cancelled for want of room. Nil: it is not, or for another reason.
	crowdedOut *Blocked
}

// backAt is when the rebooted node was back in service. Zero: it is not, or the grant ended in another way.
func (t Reboot) backAt() time.Time {
	if t.Node == nil || !t.Node.Finished(t.Entry.Seq) {
		return time.Time{}
	}
	return t.Node.Grant.At.Time
}

// Rebooting reports whether the node has passed the point of no return.
func (t Reboot) Rebooting() bool {
	return t.Node != nil && t.Node.In(t.Entry.Seq, protocol.PhaseRebooting)
}

// lost reports whether the node did not come back in time from its reboot, or went down in its drain and overran it.
func (t Reboot) lost() bool {
	return !t.FailedAt.IsZero() && (t.Rebooting() || t.Node != nil && !t.Node.Ready)
}

// begun reports whether the agent has used the grant.
func (t Reboot) begun() bool { return t.Node.Progress != nil && t.Node.Progress.Seq >= t.Entry.Seq }

// Begin is the phase of hooks that BeginHooks begins.
func (t Reboot) Begin(policy *v1alpha1.RebootPolicy, now time.Time) protocol.HookPhase {
	return protocol.BeginHooks(t.Entry, policy.Name, t.Node.BootID, t.Stage, policy.Spec.HooksOrDefault().Of(t.Stage), now)
}

// Note returns the phase of hooks with what NoteTaint notes. Hooks that have begun stay.
func (t Reboot) Note(policy *v1alpha1.RebootPolicy, now time.Time) protocol.HookPhase {
	phase := protocol.BeginHooks(t.Entry, policy.Name, t.Node.BootID, v1alpha1.HooksAfter, nil, now)
	if t.Node.Hooks.Covers(phase) {
		phase.Hooks = t.Node.Hooks.Hooks
	}
	phase.TakesPods = &t.takesPods
	return phase
}

// CancelMessage is what a grant that is cancelled reports beside its reason.
func (t Reboot) CancelMessage() string { return message.Shorten(maxMessage, t.Message) }

// RebootState is how far a granted reboot is: the same in kubectl reboot and in the label phase of metrics.
type RebootState string

// The states, in the order in which a reboot goes through them.
const (
	// StateGranted means it is in the ledger, and the agent has not begun.
	StateGranted RebootState = "Granted"
	// StateHooks means that before the drain or after the boot, hooks are waited for.
	StateHooks RebootState = "Hooks"
	// StateDraining means the node is cordoned and its pods are leaving.
	StateDraining RebootState = "Draining"
	// StateRebooting means the agent has passed the point of no return.
	StateRebooting RebootState = "Rebooting"
	// StateBooted means the boot ID is new, and the node is not Ready, its agent has not reported, or a
	// startup taint keeps pods off it.
	StateBooted RebootState = "Booted"
	// StateSettling means the node is back and must stay so for reboot.settle.
	StateSettling RebootState = "Settling"
	// StateAborted means the attempt is over without a reboot; the ledger follows.
	StateAborted RebootState = "Aborted"
)

// State is how far the reboot is, and since when. The Node must be there.
func (t Reboot) State() (RebootState, time.Time) {
	n := t.Node
	p := n.Progress
	switch {
	case t.Action == BeginHooks: // what is on the node is of an earlier phase
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
	case !n.Ready || n.Maintenance || StartupTaint(n) != "":
		return StateBooted, p.At.Time
	}
	return StateSettling, timing.Latest(n.ReadySince, n.MaintenanceSince)
}

func hooked(reason v1alpha1.Reason) bool {
	return reason == v1alpha1.ReasonWaitingForHook || reason == v1alpha1.ReasonHookFailed || reason == v1alpha1.ReasonHookTimedOut
}

// appears reports whether the node is shown its grant for the first time.
func (t Reboot) appears() bool { return t.Action == PublishGrant && !t.Rebooting() }

// cancelWhere cancels a grant that the node has not been shown yet, where there is no room for it.
func (t Reboot) cancelWhere(o *Blocked) Reboot {
	if o != nil && t.appears() {
		t.Action, t.Reason, t.Message, t.crowdedOut = CancelGrant, o.Reason, o.Message, o
	}
	return t
}

// Again decides once more about one entry, by a newer reading of its node; nil: there is none. Whether the policy has halted, and
// whether there is room, is as the plan has it: all nodes together decide that. The zero Reboot: the ledger does not hold the entry.
func (p *Plan) Again(s Snapshot, n *Node, e v1alpha1.LedgerEntry) Reboot {
	s.Nodes = nil
	if n != nil {
		s.Nodes = []*Node{n}
	}
	f := newFleet(s, &p.Halt)
	for _, held := range f.entries {
		if held.Node == e.Node && held.Seq == e.Seq {
			i := slices.IndexFunc(p.Reboots, func(t Reboot) bool { return t.Entry.Node == e.Node && t.Entry.Seq == e.Seq })
			if i < 0 {
				return f.reboot(held)
			}
			return f.reboot(held).cancelWhere(p.Reboots[i].crowdedOut)
		}
	}
	for _, n := range f.unlisted {
		if own := f.entry(n); own.Seq == e.Seq {
			return f.reboot(own)
		}
	}
	return Reboot{}
}

// Refusal is the answer with which the API server refused a write about a granted reboot. An admission policy or a webhook
// may refuse the writes to one Node alone.
type Refusal struct {
	Answer string
	// Since is when the first of the writes in a row was refused, and At when Answer came.
	Since, At time.Time
	// Removed reports that the API server accepts the grant and another program removes it from the Node again. No other write is refused.
	Removed bool
}

// text is the answer in one line of bounded length.
func (r Refusal) text() string { return message.Shorten(maxMessage, r.Answer) }

// Refused returns how many nodes hold a slot while the API server refuses the write that is due, and a message about them.
func (p *Plan) Refused() (nodes int, message string) {
	var others []string
	for _, t := range p.Reboots {
		switch {
		case t.Refused == "":
			continue
		case nodes == 0:
			message = fmt.Sprintf("node %s holds a slot since %s, and the API server refuses what the manager writes about its reboot: %s; %s",
				t.Entry.Node, timing.Instant(t.Entry.At.Time), t.Refused, t.keepsSlot())
		default:
			others = append(others, t.Entry.Node)
		}
		nodes++
	}
	if len(others) > 0 {
		message += "; the same holds for " + someOf(others)
	}
	return nodes, message
}

// keepsSlot states how long a node on which nothing can be written keeps its slot.
func (t Reboot) keepsSlot() string {
	switch {
	case t.Action == WithdrawGrant:
		return "the grant is withdrawn, and the slot is given back"
	case !t.Until.IsZero():
		return "the grant is withdrawn " + timing.Instant(t.Until) + ", and the slot is given back"
	}
	return "the slot is kept until the write is accepted or the Node is deleted"
}
