// Package underway follows one granted reboot: its entry in the ledger and its Node give one
// action.
package underway

import (
	"fmt"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/ledger"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

const (
	// publishTimeout is the time after which a grant is withdrawn in the ledger if the API server
	// keeps refusing or undoing the writes that come before the grant on the Node.
	publishTimeout = record.StartTimeout
	// silence is the time after drain.timeout at which the agent counts as dead. A running agent
	// aborts the drain long before.
	silence = 10 * time.Minute
)

// Pass holds the manager's knowledge about all granted reboots of a policy.
type Pass struct {
	Now    time.Time
	Policy *v1alpha1.RebootPolicy
	// Zone is the time zone of messages.
	Zone *time.Location
	// Ledger is the ledger that holds them.
	Ledger ledger.Ledger
	// Refused are the writes that the API server refused last, by node.
	Refused map[string]Refusal
	// Unread are the nodes that could not be read live. They keep their slots, because an entry is
	// released only after a live reading.
	Unread map[string]bool
	Checks Checks
}

// instant formats a time for messages.
func (p Pass) instant(t time.Time) string { return timing.InstantIn(t, p.Zone) }

// Checks are the checks that still apply to a granted reboot.
type Checks interface {
	// Cancels returns why to cancel a grant that the agent has not begun to use, or nil, and
	// whether the gates decide about it. A drain that has begun is finished instead.
	Cancels(t record.Times) (cause *block.Block, gates bool)
	// AwaitsGate returns the message about a gate that has to answer before the grant is published,
	// or nil.
	AwaitsGate() *block.Block
}

// Follow decides about one granted reboot, from its entry and its Node, which is nil if the Node
// does not exist.
func (p Pass) Follow(e v1alpha1.LedgerEntry, n *record.Node) Reboot {
	t := tracker{pass: p, Reboot: Reboot{Entry: record.Dated(e, p.Now), Node: n, Action: Wait, Reason: v1alpha1.ReasonGranted}}
	t.track()
	if t.Action.WritesNode() {
		t.noteRefusal()
	}
	return t.Reboot
}

// tracker decides about one granted reboot.
type tracker struct {
	pass Pass
	Reboot
}

// times returns the reboot's times.
func (t *tracker) times() record.Times {
	return record.Times{Node: t.Node, Entry: t.Entry, Policy: t.pass.Policy, Now: t.pass.Now}
}

// track finds out how far the reboot is and what to do next about it.
func (t *tracker) track() {
	switch n, e := t.Node, t.Entry; {
	case n == nil:
		t.gone("the Node object was deleted")
	case protocol.Gone(n.Record, e):
		t.gone("the Node object was deleted, and another one was registered under its name")
	case t.pass.Ledger.Overtaken(n, e):
		t.Action, t.Reason, t.Message = ReleaseEntry, v1alpha1.ReasonCancelled, "a grant of policy "+n.Grant.Policy+" replaced it"
	case protocol.Releasable(n.Record, e):
		t.Action = ReleaseEntry
		t.Reason, t.Message = endReason(n, e)
	case protocol.Withdrawn(n.Record, e):
		t.Reason, t.Message = v1alpha1.ReasonNodeWriteRefused, t.unpublished()
		if !t.pass.Unread[e.Node] {
			t.Action = ReleaseEntry
		}
	case n.In(e.Seq, protocol.PhaseRebooting):
		t.awaitBoot()
	case n.In(e.Seq, protocol.PhaseDraining):
		t.awaitDrain()
	case n.ProgressErr != nil && n.GrantSeq() >= e.Seq:
		t.awaitRepair()
	case n.Busy(e.Seq):
		t.Message = fmt.Sprintf("waits until grant %d of policy %s is over", n.Grant.Seq, n.Grant.Policy)
	default:
		t.awaitStart()
	}
}

// gone releases the entry of a deleted Node. If the reboot had begun, nothing can prove any more
// that the machine came up.
func (t *tracker) gone(how string) {
	t.Node, t.Action, t.Reason, t.Message = nil, ReleaseEntry, v1alpha1.ReasonNodeGone, how
	if at := t.Entry.RebootingAt; at != nil {
		t.Reason = v1alpha1.ReasonNodeGoneInReboot
		t.Message = fmt.Sprintf("%s, after it was sent to reboot at %s and before it was back in service: check the machine, or what deletes Nodes", how, t.pass.instant(at.Time))
	}
}

// noteRefusal records whether the API server refuses or undoes the next write. It withdraws a grant
// that could not be published for publishTimeout.
func (t *tracker) noteRefusal() {
	refusal, refused := t.pass.Refused[t.Entry.Node]
	if !refused || refusal.Removed && t.Action != PublishGrant {
		return
	}
	t.Refused = refusal.text()
	withdrawn, ok := protocol.Withdraw(t.Node.Record, t.Entry, t.pass.Now)
	if !ok {
		return
	}
	t.Until = refusal.Since.Add(publishTimeout)
	if !t.pass.Now.Before(t.Until) {
		t.Action, t.Until, t.Entry = WithdrawGrant, time.Time{}, withdrawn
	}
}

// unpublished says why a grant was withdrawn before the node showed it. A new leader does not know
// the API server's answer.
func (t *tracker) unpublished() string {
	why := "the API server refused the manager's writes to the Node"
	if answer := t.pass.Refused[t.Entry.Node].text(); answer != "" {
		why += ": " + answer
	}
	return why
}

// endReason returns how a reboot ended.
func endReason(n *record.Node, e v1alpha1.LedgerEntry) (v1alpha1.Reason, string) {
	switch {
	case n.In(e.Seq, protocol.PhaseAborted):
		return n.Progress.Reason, n.Progress.Message
	case n.Shows(e.Seq) && n.Grant.State == protocol.GrantCancelled:
		return n.Grant.Reason, "the grant was cancelled before the drain began"
	case n.GrantSeq() > e.Seq:
		return v1alpha1.ReasonCancelled, "a newer grant replaced it"
	}
	return v1alpha1.ReasonGranted, "back in service"
}

// awaitStart handles a grant that the agent has not begun to use. Every check still applies.
func (t *tracker) awaitStart() {
	cause, gates := t.pass.Checks.Cancels(t.times())
	t.NeedsGates = gates
	if cause != nil {
		t.Action, t.Reason, t.Message = CancelGrant, cause.Reason, cause.Message
		return
	}
	if !t.Node.Shows(t.Entry.Seq) {
		switch hooks, gate := t.hooksOf(v1alpha1.HooksBefore), t.pass.Checks.AwaitsGate(); {
		case !hooks.approved():
			if t.awaitHooks(hooks); !t.FailedAt.IsZero() { // the agent has not seen the grant yet, so the slot can be freed
				t.Action, t.FailedAt = CancelGrant, time.Time{}
			}
		case gate != nil:
			t.Message = gate.Message
		default:
			t.Action = PublishGrant
		}
		return
	}
	t.Message = "granted; the agent has not begun yet"
	t.Until = t.times().Published().Add(record.StartTimeout)
	if !t.pass.Now.Before(t.Until) {
		t.Action, t.Reason, t.Until = CancelGrant, v1alpha1.ReasonAgentSilent, time.Time{}
		t.Message = fmt.Sprintf("the agent did not act on its grant within %s; check the agent's pod on this node", record.StartTimeout)
	}
}

// awaitDrain handles a drain. The agent begins it after drain.leadTime and aborts it itself after
// drain.timeout.
func (t *tracker) awaitDrain() {
	spec := t.pass.Policy.Spec.DrainOrDefault()
	lead, patience := spec.LeadTimeOrDefault(), max(silence, spec.VolumeDetachTimeoutOrDefault()+silence/2)
	timeout := lead + spec.TimeoutOrDefault()
	began := t.times().Began(record.StartTimeout)
	t.Entry, t.Message = protocol.NoteReboot(t.Node.Record, t.Entry, began), "draining"
	if lead > 0 {
		t.Message = "cordoned; pods are evicted from " + t.pass.instant(began.Add(lead)) + " on"
	}
	t.DrainUntil = began.Add(timeout)
	t.overdue(t.DrainUntil.Add(patience), v1alpha1.ReasonDrainTimedOut, fmt.Sprintf(
		"the drain began at %s and should have ended within %s; the node keeps its slot until the agent answers. Check the agent's pod on this node",
		t.pass.instant(began), timeout))
}

// awaitRepair handles unreadable progress. The agent may be at any step, so the slot is kept until
// a whole reboot would be overdue.
func (t *tracker) awaitRepair() {
	t.Reason, t.Message = v1alpha1.ReasonRecordUnreadable, t.Node.Unreadable+"; the node keeps its slot until the agent repairs the record"
	granted := t.times().Published()
	t.Entry = protocol.NoteReboot(t.Node.Record, t.Entry, granted)
	t.overdue(granted.Add(record.LongestDrain(t.pass.Policy)+t.pass.Policy.Spec.RebootOrDefault().TimeoutOrDefault()), v1alpha1.ReasonRebootTimedOut, fmt.Sprintf(
		"the progress of the reboot granted at %s cannot be read, and was not repaired in time: %s; the node keeps its slot. Check the machine and "+
			"its agent; once you are sure that the machine is off, delete the Node to free the slot", t.pass.instant(granted), t.Node.Unreadable))
}

// awaitBoot handles a node past the point of no return. Only a new boot ID ends the reboot;
// readiness or a starting agent does not. If the grant was removed, it is written again, because
// the reboot cannot be finished without it.
func (t *tracker) awaitBoot() {
	n, p, sent := t.Node, t.Node.Progress, t.times().Sent()
	t.Entry = protocol.NoteReboot(n.Record, t.Entry, sent)
	if n.GrantSeq() < t.Entry.Seq {
		t.Action, t.Message = PublishGrant, "rebooting; the grant is missing"
		return
	}
	timeout := t.pass.Policy.Spec.RebootOrDefault().TimeoutOrDefault()
	booted := n.BootID != "" && p.HasBooted(n.BootID)
	if booted && n.Ready && !n.Maintenance {
		t.settle()
		return
	}
	t.Message = "rebooting"
	if booted {
		t.Message = "booted; waiting for the node to be Ready and for its agent"
	}
	if down := t.times().DownAgain(); booted && !down.IsZero() {
		t.overdue(down.Add(timeout), v1alpha1.ReasonRebootTimedOut, fmt.Sprintf("the node has booted, but has not stayed Ready in the %s since %s; it keeps "+
			"its slot. Check the machine; once you are sure it is off, delete the Node to free the slot", timeout, t.pass.instant(down)))
		return
	}
	reason, late := v1alpha1.ReasonRebootTimedOut, "was not back within %s; it keeps its slot. Check the machine; once you are sure it is off, delete the Node to free the slot"
	switch {
	case booted && n.Ready:
		reason, late = v1alpha1.ReasonAgentSilent, "is Ready again, but its agent has not reported within %s; it keeps its slot until then. Check the agent's pod on this node"
	case n.Ready:
		late = "is still Ready on the previous boot after %s; it keeps its slot. Event RebootRefused of the node says what blocks the reboot; " +
			"fix that, or reboot the host by hand"
	}
	t.overdue(sent.Add(timeout), reason, fmt.Sprintf("the node was sent to reboot at %s and "+late, t.pass.instant(sent), timeout))
}

// settle handles a node that is up again and whose agent has reported. It must stay Ready for
// reboot.settle. The agent's report counts besides Ready, because a quick reboot never shows as not
// Ready.
func (t *tracker) settle() {
	hooks := t.hooksOf(v1alpha1.HooksAfter)
	// A hook may taint the node for as long as it runs.
	if (!hooks.begun || hooks.approved()) && t.awaitTaints() {
		return
	}
	since := t.times().BackSince()
	if since.IsZero() {
		t.Action, t.Stage, t.Message = BeginHooks, v1alpha1.HooksAfter, "back, but its clock is wrong: settling begins"
		return
	}
	t.Until = since.Add(t.pass.Policy.Spec.RebootOrDefault().SettleOrDefault())
	t.Message = "back since " + t.pass.instant(since) + ", settling until " + t.pass.instant(t.Until)
	switch {
	case t.pass.Now.Before(t.Until):
	case !hooks.approved():
		t.awaitHooks(hooks)
	default:
		t.Action, t.Until, t.Message = FinishGrant, time.Time{}, "back in service"
	}
}

func (t *tracker) overdue(deadline time.Time, reason v1alpha1.Reason, message string) {
	if t.pass.Now.Before(deadline) {
		t.Until = deadline
		return
	}
	t.FailedAt, t.Reason, t.Message = deadline, reason, message
}
