package record

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Times reads the times of one granted reboot. Each comes from a Node's clock or from an earlier
// leader's, and is limited by what the ledger and the manager's own clock prove.
type Times struct {
	Node   *Node
	Entry  v1alpha1.LedgerEntry
	Policy *v1alpha1.RebootPolicy
	Now    time.Time
}

// Published returns when the agent could first see its grant. The grant has that time. If it is not
// credible, the ledger gives the latest time at which publishing was due.
func (t Times) Published() time.Time {
	granted, hooks := t.Entry.At.Time, t.Policy.Spec.HooksOrDefault()
	if !t.Node.Shows(t.Entry.Seq) {
		return granted
	}
	latest := granted
	if len(hooks.Of(v1alpha1.HooksBefore)) > 0 {
		latest = granted.Add(hooks.TimeoutOrDefault())
	}
	if at := t.Node.Grant.At.Time; !InFuture(at, latest) {
		return at
	}
	return latest
}

// GrantInFuture reports whether the grant that the node shows is dated too far in the future.
func (t Times) GrantInFuture() bool {
	return t.Node.Shows(t.Entry.Seq) && InFuture(t.Node.Grant.At.Time, t.Now)
}

// Began returns when the node entered its phase, at most latest after the agent could first see its
// grant.
func (t Times) Began(latest time.Duration) time.Time {
	published := t.Published()
	return believed(t.Node.Progress.At.Time, published, published.Add(latest))
}

// Sent returns when the node passed the point of no return. That may be later than the policy's
// drain settings allow, because the drain may have begun before they changed. It is not later than
// the time at which a manager first saw it.
func (t Times) Sent() time.Time {
	at, published, seen := t.Node.Progress.At.Time, t.Published(), t.Now
	if t.Entry.RebootingAt != nil {
		seen = t.Entry.RebootingAt.Time
	}
	if possible(at, published, seen) {
		return at
	}
	return believed(at, published, published.Add(LongestDrain(t.Policy)))
}

// DownAgain returns when a node that was back became NotReady again, while its hooks wait for
// example. The result is capped at the time when the node could have been in service, so a kubelet
// that comes and goes cannot push the deadline out. It returns zero if the node was not back yet or
// already counts as lost.
func (t Times) DownAgain() time.Time {
	n, hooks := t.Node, t.Policy.Spec.HooksOrDefault()
	back := timing.Latest(t.Sent(), n.MaintenanceSince)
	if down := n.ReadySince; n.Ready || n.Maintenance || n.ReportedLost() || !down.After(back) || !HasCome(down, t.Now) {
		return time.Time{}
	}
	latest := back.Add(t.Policy.Spec.RebootOrDefault().SettleOrDefault())
	if len(hooks.Of(v1alpha1.HooksAfter)) > 0 {
		latest = latest.Add(hooks.TimeoutOrDefault())
	}
	return timing.Earliest(n.ReadySince, latest)
}

// BackSince returns when the node was back, by its own clock. Until the host has synchronized its
// clock, that may be off by hours. It is then the time at which the manager saw it, kept in
// annotation hooks, or zero if that is not recorded yet.
func (t Times) BackSince() time.Time {
	since := timing.Latest(t.Node.ReadySince, t.Node.MaintenanceSince)
	reported := !t.Node.MaintenanceSince.IsZero() // a quick reboot never shows as not Ready, but its agent reports after it
	if HasCome(since, t.Now) && (!reported || HasCome(t.Published(), since)) {
		if noted := t.Noted(); noted != nil && noted.TakesPods != nil {
			since = timing.Latest(since, noted.At.Time)
		}
		return since
	}
	if noted := t.Noted(); noted != nil {
		return noted.At.Time
	}
	return time.Time{}
}

// HooksBegan returns when the node began to show its phase of hooks. The clocks of two leaders may
// differ, and a deadline that counts from now would move on forever.
func (t Times) HooksBegan() time.Time {
	if began := t.Node.Hooks.At.Time; possible(began, t.Entry.At.Time, t.Now) {
		return began
	}
	return t.Entry.At.Time
}

// HookRefusedAt returns when the node first showed that a hook refused, because answers have no
// time. Until the node shows it, HookRefusedAt returns when the hooks began. Counting from there
// always would let another node's success in between hide the failure.
func (t Times) HookRefusedAt() time.Time {
	asked, shown := t.Node.Hooks.At.Time, t.Node.Permitted
	if shown == nil || shown.Reason != string(v1alpha1.ReasonHookFailed) || !HasCome(shown.LastHeartbeatTime.Time, t.Now) {
		return asked
	}
	return timing.Latest(asked, shown.LastHeartbeatTime.Time)
}

// InHookPhase reports whether the node shows this phase, for which all stale answers were removed.
// A phase dated in the future does not count, because it would never time out.
func (t Times) InHookPhase(stage v1alpha1.HookStage, keys []v1alpha1.AnnotationKey) bool {
	h := t.Node.Hooks
	return h.Covers(protocol.BeginHooks(t.Entry, t.Policy.Name, t.Node.BootID, stage, keys, t.Now)) && !InFuture(h.At.Time, t.Now)
}

// Noted returns what the node records after its boot, or nil.
func (t Times) Noted() *protocol.HookPhase {
	if !t.InHookPhase(v1alpha1.HooksAfter, nil) {
		return nil
	}
	return t.Node.Hooks
}
