package plan

import (
	"fmt"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

const (
	// startTimeout is how long an agent may leave a grant untouched before it is cancelled. It acts within a second when it is there at
	// all.
	startTimeout = 5 * time.Minute
	// publishTimeout is how long the API server may refuse or undo what has to be written on a Node before it shows its grant. Then the
	// grant is withdrawn in the ledger. It is as long as the agent may take.
	publishTimeout = startTimeout
	// silence is how much longer than drain.timeout a drain may show before the agent counts as dead: it aborts by
	// itself long before.
	silence = 10 * time.Minute
)

// tracker decides about one granted reboot.
type tracker struct {
	f *fleet
	Reboot
}

// track finds out how far the reboot is, and what is to be done next about it.
func (t *tracker) track() {
	switch n, e := t.Node, t.Entry; {
	case n == nil:
		t.gone("the Node object was deleted")
	case protocol.Gone(n.Record, e):
		t.gone("the Node object was deleted, and another one was registered under its name")
	case protocol.Overtaken(n.Record, e, t.f.limited.ledger) && t.f.Governor.replaced(n, t.f.name, t.f.limited.ledger):
		t.Action, t.Reason, t.Message = ReleaseEntry, v1alpha1.ReasonCancelled, "a grant of policy "+n.Grant.Policy+" replaced it"
	case protocol.Releasable(n.Record, e):
		t.Action = ReleaseEntry
		t.Reason, t.Message = endReason(n, e)
	case protocol.Withdrawn(n.Record, e):
		t.Reason, t.Message = v1alpha1.ReasonNodeWriteRefused, t.unpublished()
		if !t.f.Unread[e.Node] {
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

// gone releases the entry of a Node that was deleted. It cannot be proved any more whether its machine came up from a reboot that had begun.
func (t *tracker) gone(how string) {
	t.Node, t.Action, t.Reason, t.Message = nil, ReleaseEntry, v1alpha1.ReasonNodeGone, how
	if at := t.Entry.RebootingAt; at != nil {
		t.Reason = v1alpha1.ReasonNodeGoneInReboot
		t.Message = fmt.Sprintf("%s, after it was sent to reboot at %s and before it was back in service: check the machine, or what deletes Nodes", how, t.f.instant(at.Time))
	}
}

// noteRefusal records that the API server refuses or undoes the write that is due, if it does. A grant that could not be published for
// publishTimeout is withdrawn.
func (t *tracker) noteRefusal() {
	refusal, refused := t.f.Refused[t.Entry.Node]
	if !refused || refusal.Removed && t.Action != PublishGrant {
		return
	}
	t.Refused = refusal.text()
	withdrawn, ok := protocol.Withdraw(t.Node.Record, t.Entry, t.f.Now)
	if !ok {
		return
	}
	t.Until = refusal.Since.Add(publishTimeout)
	if !t.f.Now.Before(t.Until) {
		t.Action, t.Until, t.Entry = WithdrawGrant, time.Time{}, withdrawn
	}
}

// unpublished states why a grant was withdrawn that the node has never shown. A new leader does not know the answer.
func (t *tracker) unpublished() string {
	why := "the API server refused what the manager wrote on the Node"
	if answer := t.f.Refused[t.Entry.Node].text(); answer != "" {
		why += ": " + answer
	}
	return why
}

// endReason states how a reboot that is over has ended.
func endReason(n *Node, e v1alpha1.LedgerEntry) (v1alpha1.Reason, string) {
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

// awaitStart: the agent has not acted yet, so everything that blocks the reboot still counts.
func (t *tracker) awaitStart() {
	o := t.withdrawal()
	t.NeedsGates = o.reaches(gateChecks)
	if o != nil {
		t.Action, t.Reason, t.Message = CancelGrant, o.Reason, o.Message
		return
	}
	if !t.Node.Shows(t.Entry.Seq) {
		switch hooks, gate := t.hooksOf(v1alpha1.HooksBefore), gateUnknown(view{fleet: t.f}, t.Node); {
		case !hooks.approved():
			if t.awaitHooks(hooks); !t.FailedAt.IsZero() { // the agent knows nothing of the grant yet: the slot is given back
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
	t.Until = t.published().Add(startTimeout)
	if !t.f.Now.Before(t.Until) {
		t.Action, t.Reason, t.Until = CancelGrant, v1alpha1.ReasonAgentSilent, time.Time{}
		t.Message = fmt.Sprintf("the agent did not act on its grant within %s: is the agent's pod running on this node?", startTimeout)
	}
}

// withdrawal is what cancels a grant that the agent has not begun to use. A drain that has begun is finished.
func (t *tracker) withdrawal() *Blocked {
	n, e := t.Node, t.Entry
	switch g := t.f.Governor.Govern(n); {
	case e.WithdrawnAt != nil:
		return blocked(v1alpha1.ReasonGrantWithdrawn, "the ledger of policy %s has withdrawn the grant or had lost it, so no agent begins under it", t.f.name)
	case t.f.Policy.DeletionTimestamp != nil:
		return blocked(v1alpha1.ReasonCancelled, "policy %s is being deleted", t.f.name)
	case n.BootID != e.BootID:
		return blocked(v1alpha1.ReasonCancelled, "the node was rebooted by somebody else after the grant")
	case !n.NeedsReboot():
		return blocked(v1alpha1.ReasonCancelled, "the node does not ask for a reboot any more")
	case g.Policy != t.f.name && len(g.Rivals) > 0:
		return blocked(v1alpha1.ReasonPolicyConflict, "policies %s select the node with the same priority", list(g.Rivals))
	case g.Policy != t.f.name:
		return blocked(v1alpha1.ReasonNoPolicy, "policy %s does not govern the node any more", t.f.name)
	case n.Shows(e.Seq) && n.Grant.At.Sub(t.f.Now) > clockAhead:
		return blocked(v1alpha1.ReasonRecordUnreadable, "the grant is of %s, more than an hour ahead", t.f.instant(n.Grant.At.Time))
	case t.f.dryRun():
		return blocked(v1alpha1.ReasonDryRun, "policy %s only reports", t.f.name)
	}
	return view{fleet: t.f}.first(untilBegun, n)
}

// awaitDrain: the agent drains after drain.leadTime, and ends the drain by itself when drain.timeout has passed since.
func (t *tracker) awaitDrain() {
	spec := t.f.Policy.Spec.DrainOrDefault()
	lead, patience := spec.LeadTimeOrDefault(), max(silence, spec.VolumeDetachTimeoutOrDefault()+silence/2)
	timeout := lead + spec.TimeoutOrDefault()
	began := t.began(startTimeout)
	t.Entry, t.Message = protocol.NoteReboot(t.Node.Record, t.Entry, began), "draining"
	if lead > 0 {
		t.Message = "cordoned; pods are asked to leave from " + t.f.instant(began.Add(lead)) + " on"
	}
	t.DrainUntil = began.Add(timeout)
	t.overdue(t.DrainUntil.Add(patience), v1alpha1.ReasonDrainTimedOut, fmt.Sprintf(
		"the drain began at %s and should have ended within %s; its slot is kept until the agent answers: look at the agent's pod on this node",
		t.f.instant(began), timeout))
}

// awaitRepair: the agent may be anywhere, so its slot is kept as long as that of a reboot; then it is overdue as one.
func (t *tracker) awaitRepair() {
	t.Reason, t.Message = v1alpha1.ReasonRecordUnreadable, t.Node.Unreadable+"; the slot is kept until the agent repairs it"
	granted := t.published()
	t.Entry = protocol.NoteReboot(t.Node.Record, t.Entry, granted)
	t.overdue(granted.Add(longestDrain(t.f.Policy)+t.f.Policy.Spec.RebootOrDefault().TimeoutOrDefault()), v1alpha1.ReasonRebootTimedOut, fmt.Sprintf(
		"the progress of the reboot granted at %s cannot be read, and was not repaired in time: %s; its slot is kept: check the machine and "+
			"its agent; once it is proved off, deleting the Node frees the slot", t.f.instant(granted), t.Node.Unreadable))
}

// awaitBoot: past the point of no return. Only a new boot ID ends it: not readiness, and not an agent that starts. A grant
// that was removed since is written again: without it the reboot could not be finished.
func (t *tracker) awaitBoot() {
	n, p, sent := t.Node, t.Node.Progress, t.sent()
	t.Entry = protocol.NoteReboot(n.Record, t.Entry, sent)
	if n.GrantSeq() < t.Entry.Seq {
		t.Action, t.Message = PublishGrant, "rebooting; the grant is missing"
		return
	}
	timeout := t.f.Policy.Spec.RebootOrDefault().TimeoutOrDefault()
	booted := n.BootID != "" && p.HasBooted(n.BootID)
	if booted && n.Ready && !n.Maintenance {
		t.settle()
		return
	}
	t.Message = "rebooting"
	if booted {
		t.Message = "booted; waiting for the node to be Ready and for its agent"
	}
	if down := t.downAgain(sent); booted && !down.IsZero() {
		t.overdue(down.Add(timeout), v1alpha1.ReasonRebootTimedOut, fmt.Sprintf("the node has booted, and has not been Ready for %s since %s; its slot is "+
			"kept: check the machine; once it is proved off, deleting the Node frees the slot", timeout, t.f.instant(down)))
		return
	}
	reason, late := v1alpha1.ReasonRebootTimedOut, "was not back within %s; its slot is kept: check the machine; once it is proved off, deleting the Node frees the slot"
	switch {
	case booted && n.Ready:
		reason, late = v1alpha1.ReasonAgentSilent, "is Ready again, but its agent has not reported within %s; its slot is kept until it does: look at the agent's pod on this node"
	case n.Ready:
		late = "is still Ready on the previous boot after %s; its slot is kept: event RebootRefused on the node reports what keeps it, " +
			"or a reboot by hand ends it"
	}
	t.overdue(sent.Add(timeout), reason, fmt.Sprintf("the node was sent to reboot at %s and "+late, t.f.instant(sent), timeout))
}

// downAgain is since when a node is not Ready that was back, as while its hooks wait. It is no later than when it could have been in service:
// a kubelet that comes and goes does not put the deadline off. Zero: it was not back, or counts as lost already.
func (t *tracker) downAgain(sent time.Time) time.Time {
	n, hooks := t.Node, t.f.Policy.Spec.HooksOrDefault()
	back := timing.Latest(sent, n.MaintenanceSince)
	if down := n.ReadySince; n.Ready || n.Maintenance || n.reportedLost() || !down.After(back) || !hasCome(down, t.f.Now) {
		return time.Time{}
	}
	latest := back.Add(t.f.Policy.Spec.RebootOrDefault().SettleOrDefault())
	if len(hooks.Of(v1alpha1.HooksAfter)) > 0 {
		latest = latest.Add(hooks.TimeoutOrDefault())
	}
	return timing.Earliest(n.ReadySince, latest)
}

// settle: the node is up again and its agent has reported; it must stay so for reboot.settle. The agent's first report
// counts beside Ready, because a quick reboot never shows as not Ready.
func (t *tracker) settle() {
	hooks := t.hooksOf(v1alpha1.HooksAfter)
	// A hook may taint the node for as long as it runs.
	if (!hooks.begun || hooks.approved()) && t.awaitTaints() {
		return
	}
	since := t.backSince()
	if since.IsZero() {
		t.Action, t.Stage, t.Message = BeginHooks, v1alpha1.HooksAfter, "back, but its clock is wrong: settling begins"
		return
	}
	t.Until = since.Add(t.f.Policy.Spec.RebootOrDefault().SettleOrDefault())
	t.Message = "back since " + t.f.instant(since) + ", settling until " + t.f.instant(t.Until)
	switch {
	case t.f.Now.Before(t.Until):
	case !hooks.approved():
		t.awaitHooks(hooks)
	default:
		t.Action, t.Until, t.Message = FinishGrant, time.Time{}, "back in service"
	}
}

// published is when the agent was given its grant: the grant reports it, and the ledger reports by when it was due.
func (t *tracker) published() time.Time {
	granted, hooks := t.Entry.At.Time, t.f.Policy.Spec.HooksOrDefault()
	if !t.Node.Shows(t.Entry.Seq) {
		return granted
	}
	latest := granted
	if len(hooks.Of(v1alpha1.HooksBefore)) > 0 {
		latest = granted.Add(hooks.TimeoutOrDefault())
	}
	if at := t.Node.Grant.At.Time; at.Sub(latest) <= clockAhead {
		return at
	}
	return latest
}

// began is when the node came into its phase, which is no longer than latest after it was given the grant.
func (t *tracker) began(latest time.Duration) time.Time {
	published := t.published()
	return believed(t.Node.Progress.At.Time, published, published.Add(latest))
}

// sent is when the node passed the point of no return. It may be later than the policy lets a drain take: the drain may have gone by the
// policy as it was before. It is not later than when a manager has first seen it.
func (t *tracker) sent() time.Time {
	at, published, seen := t.Node.Progress.At.Time, t.published(), t.f.Now
	if t.Entry.RebootingAt != nil {
		seen = t.Entry.RebootingAt.Time
	}
	if possible(at, published, seen) {
		return at
	}
	return believed(at, published, published.Add(longestDrain(t.f.Policy)))
}

// backSince is when the node was back by its own clock. That may still be the clock of the hardware, hours off, until the host has
// asked for the time. Then it is when the manager saw it, which annotation hooks keeps. Zero: it has to be noted first.
func (t *tracker) backSince() time.Time {
	since := timing.Latest(t.Node.ReadySince, t.Node.MaintenanceSince)
	reported := !t.Node.MaintenanceSince.IsZero() // a quick reboot never shows as not Ready, but its agent reports after it
	if since.Sub(t.f.Now) <= clockOff && (!reported || t.published().Sub(since) <= clockOff) {
		if noted := t.noted(); noted != nil && noted.TakesPods != nil {
			since = timing.Latest(since, noted.At.Time)
		}
		return since
	}
	if noted := t.noted(); noted != nil {
		return noted.At.Time
	}
	return time.Time{}
}

func (t *tracker) overdue(deadline time.Time, reason v1alpha1.Reason, message string) {
	if t.f.Now.Before(deadline) {
		t.Until = deadline
		return
	}
	t.FailedAt, t.Reason, t.Message = deadline, reason, message
}
