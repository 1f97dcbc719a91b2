package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Halt is the wanted condition Halted of a policy.
type Halt struct {
	Halted  bool
	Reason  v1alpha1.Reason
	Message string
}

// ResumeHint returns the end of condition Halted's message: the command that resumes the policy.
func ResumeHint(policy string) string {
	return fmt.Sprintf(`; fix them, then run: kubectl annotate rebootpolicy %s %s="what was fixed"`, policy, v1alpha1.AnnotationResume)
}

// attempts evaluates past attempts to reboot nodes under one policy.
type attempts struct {
	policy   *v1alpha1.RebootPolicy
	now      time.Time
	interval time.Duration
}

// halt counts the nodes that failed since the last success or since an administrator resumed the
// policy. A halted policy stays halted until it is resumed.
func (a attempts) halt(governed []*Node, reboots []Reboot) Halt {
	if value, resumed := a.policy.Annotations[v1alpha1.AnnotationResume]; resumed {
		return Halt{Reason: v1alpha1.ReasonResumed, Message: "resumed: " + message.Shorten(maxMessage, cmp.Or(value, "no reason given"))}
	}
	current := meta.FindStatusCondition(a.policy.Status.Conditions, v1alpha1.ConditionHalted)
	if current != nil && current.Status == metav1.ConditionTrue {
		return Halt{Halted: true, Reason: v1alpha1.ReasonTooManyFailures, Message: strings.TrimSuffix(current.Message, ResumeHint(a.policy.Name))}
	}
	from := timing.Latest(LastReboot(a.policy, a.now), a.resumedAt()) // LastReboot ignores the future, which would hide every failure until then
	failed := a.failedSince(from, governed, reboots)
	if most := a.policy.Spec.MaxFailuresOrDefault(); len(failed) >= int(most) {
		return Halt{Halted: true, Reason: v1alpha1.ReasonTooManyFailures, Message: fmt.Sprintf(
			"%s failed since the last success (maxFailures is %d): %s", message.Count(len(failed), "node", "nodes"), most, someOf(failed))}
	}
	return quiet(current)
}

// quiet returns the state without a halt. It keeps reason Resumed and its message, because failures
// count from that time.
func quiet(current *metav1.Condition) Halt {
	if current != nil && current.Reason == string(v1alpha1.ReasonResumed) {
		return Halt{Reason: v1alpha1.ReasonResumed, Message: current.Message}
	}
	return Halt{Reason: v1alpha1.ReasonHealthy}
}

// lost returns the nodes of a ring whose Node objects were deleted during their reboots. They count
// until a node of the ring comes back or an administrator resumes the policy.
func (a attempts) lost(ring string, reboots []Reboot) []string {
	if _, resumed := a.policy.Annotations[v1alpha1.AnnotationResume]; resumed {
		return nil
	}
	var names []string
	resumedAt := a.resumedAt()
	for _, past := range a.policy.Status.History {
		switch {
		case past.Ring != ring:
		case past.Result == v1alpha1.RebootSucceeded:
			names = names[:0]
		case past.Reason == v1alpha1.ReasonNodeGoneInReboot && past.EndedAt.After(resumedAt) && hasCome(past.EndedAt.Time, a.now):
			names = append(names, past.Node)
		}
	}
	for _, t := range reboots {
		if t.Entry.Ring == ring && t.Reason == v1alpha1.ReasonNodeGoneInReboot {
			names = append(names, t.Entry.Node)
		}
	}
	return names
}

// resumedAt returns when an administrator last resumed the policy, or zero if never or if that time
// is in the future.
func (a attempts) resumedAt() time.Time {
	if at := resumedAt(a.policy); hasCome(at, a.now) {
		return at
	}
	return time.Time{}
}

// resumedAt returns when an administrator last resumed the policy, by the clock of the leader that
// recorded it, or zero if never.
func resumedAt(policy *v1alpha1.RebootPolicy) time.Time {
	current := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionHalted)
	if current != nil && current.Reason == string(v1alpha1.ReasonResumed) {
		return current.LastTransitionTime.Time
	}
	return time.Time{}
}

// failedSince lists the nodes that failed after a time: the attempt was given up, missed its
// deadline, or ended with a deleted Node. Each node counts once.
func (a attempts) failedSince(from time.Time, governed []*Node, reboots []Reboot) []string {
	reasons := map[string]v1alpha1.Reason{}
	for _, n := range governed {
		switch {
		case !n.NeedsReboot():
		case n.hookRefused() && n.Grant.At.After(from):
			reasons[n.Name] = n.Grant.Reason
		case n.failedTry(): // a closed budget is not the node's failure
		case n.failed():
			if earliest, _ := a.ended(n); earliest.After(from) {
				reasons[n.Name] = n.Progress.Reason
			}
		}
	}
	for _, t := range reboots {
		if t.FailedAt.After(from) || t.Reason == v1alpha1.ReasonNodeGoneInReboot {
			reasons[t.Entry.Node] = t.Reason
		}
	}
	for _, past := range a.policy.Status.History {
		if a.lostNode(past, from) {
			reasons[past.Node] = past.Reason
		}
	}
	failed := make([]string, 0, len(reasons))
	for _, name := range slices.Sorted(maps.Keys(reasons)) {
		failed = append(failed, name+" ("+string(reasons[name])+")")
	}
	return failed
}

// lostNode reports whether the Node was deleted during its reboot, after from.
func (a attempts) lostNode(past v1alpha1.PastReboot, from time.Time) bool {
	return past.Reason == v1alpha1.ReasonNodeGoneInReboot && past.EndedAt.After(from) && hasCome(past.EndedAt.Time, a.now)
}

// ended returns when the last attempt of a node ended, as the earliest and the latest possible
// time. The node's own clock says when, unless the manager's times rule that out. A failure in the
// future would outlive every resume and hold the node back longer than others, and one before its
// grant would not count at all. The bounds do not depend on the present time, so the answer stays
// the same.
func (a attempts) ended(n *Node) (earliest, latest time.Time) {
	at, g, longest := n.Progress.At.Time, n.Grant, longestDrain(a.policy)
	past := a.last(n)
	switch {
	case past != nil && past.Seq == n.Progress.Seq && at.After(past.EndedAt.Time) && hasCome(past.EndedAt.Time, a.now):
		return past.EndedAt.Time, past.EndedAt.Time
	case g == nil && at.Sub(a.now) > clockOff:
		return time.Time{}, time.Time{}
	case g != nil && g.Seq > n.Progress.Seq && at.Sub(g.At.Time) > clockOff: // the attempt ended before the next grant
		return time.Time{}, g.At.Time
	case g != nil && g.Seq == n.Progress.Seq && (at.Sub(g.At.Time) > longest+clockOff || g.At.Sub(at) > clockOff):
		return g.At.Time, g.At.Add(longest)
	}
	return at, at
}

// longestDrain returns the time after a grant by which its drain has ended, in any way.
func longestDrain(policy *v1alpha1.RebootPolicy) time.Duration {
	spec := policy.Spec.DrainOrDefault()
	return startTimeout + spec.LeadTimeOrDefault() + spec.TimeoutOrDefault() + spec.VolumeDetachTimeoutOrDefault()
}

const (
	firstBackOff = 5 * time.Minute
	lastBackOff  = 6 * time.Hour
	// silentBackOff is the pause for a node whose agent is dead, so that it does not take a slot
	// again and again.
	silentBackOff = 15 * time.Minute
	// DefaultRebootInterval is the least time between a node's return from a granted reboot and its
	// next grant. It limits how often a node reboots whose need never ends.
	DefaultRebootInterval = 30 * time.Minute
	// refusedBackOff is the pause for a Node that refuses every write, as long as the history holds
	// the attempt.
	refusedBackOff = 30 * time.Minute
)

// backingOff blocks a node after a failed attempt: for 5 minutes, doubling to 6 hours until a
// reboot succeeds. After a successful reboot it blocks for the interval, unless an administrator
// requests the next one.
func backingOff(v view, n *Node) *Blocked {
	if until := v.attempts.rested(n); v.Now.Before(until) && !Urgent(v.Policy, n) {
		return blocked(v1alpha1.ReasonBackingOff, "the node is back from its last reboot since %s; the next may begin %s after that, at %s, and `kubectl reboot request %s` starts it now",
			v.instant(n.Grant.At.Time), v.attempts.interval, v.instant(until), n.Name).until(until)
	}
	until, why := v.attempts.backOff(n)
	if !v.Now.Before(until) {
		return nil
	}
	return blocked(v1alpha1.ReasonBackingOff, "%s; the next attempt is due %s%s", why, v.instant(until), v.attempts.retryHint(n)).until(until)
}

// rested returns when the interval after the node's last reboot ends. It returns zero if the node
// was not rebooted, or an administrator's annotation requests another reboot or ends the interval.
func (a attempts) rested(n *Node) time.Time {
	_, requested := v1alpha1.RequestIn(n.Annotations)
	if g := n.Grant; g != nil && g.State == protocol.GrantFinished && !requested && !a.retriedNow(n) {
		return g.At.Add(a.interval)
	}
	return time.Time{}
}

// backOff returns until when a node is held back, and why, or zero if it is not.
func (a attempts) backOff(n *Node) (until time.Time, why string) {
	if a.retriedNow(n) {
		return time.Time{}, ""
	}
	if past := a.last(n); past != nil && past.Result == v1alpha1.RebootWithdrawn && hasCome(past.EndedAt.Time, a.now) {
		return past.EndedAt.Add(refusedBackOff), lastFailed(past.Reason, past.Message)
	}
	if n.silent() {
		return n.Grant.At.Add(silentBackOff), "the agent did not act on the last grant"
	}
	if n.hookRefused() {
		return n.Grant.At.Add(hookBackOff), lastFailed(n.Grant.Reason, n.Grant.Message)
	}
	if p := n.Progress; n.failed() && !n.failedTry() {
		return a.retriedFrom(n), lastFailed(p.Reason, p.Message)
	}
	return time.Time{}, ""
}

// triesFrom returns when the next try of a node with a closed budget is due. Zero means at once.
func (a attempts) triesFrom(n *Node) time.Time {
	if !n.failedTry() || a.retriedNow(n) {
		return time.Time{}
	}
	return a.retriedFrom(n)
}

// retriedFrom returns when the back-off after the node's failed attempt ends.
func (a attempts) retriedFrom(n *Node) time.Time {
	_, ended := a.ended(n)
	return ended.Add(timing.Backoff(int(n.Progress.Failures), firstBackOff, lastBackOff))
}

// lastNumber returns the number of the last attempt to reboot a node, or 0 if there was none.
func (a attempts) lastNumber(n *Node) int64 {
	number := n.Seen()
	if past := a.last(n); past != nil {
		number = max(number, past.Seq)
	}
	return number
}

// retriedNow reports whether an administrator has ended the back-off after the last attempt. The
// next attempt has another number, so nothing has to remember that this one was retried.
func (a attempts) retriedNow(n *Node) bool {
	number := a.lastNumber(n)
	return number > 0 && n.Annotations[v1alpha1.AnnotationRetry] == strconv.FormatInt(number, 10)
}

// retryHint is the end of a sentence about a back-off: the command that ends it.
func (a attempts) retryHint(n *Node) string {
	return fmt.Sprintf("; to retry now: kubectl annotate node %s %s=%d --overwrite", n.Name, v1alpha1.AnnotationRetry, a.lastNumber(n))
}

// BackOff returns until when a node is held back after its last attempt, and the number of that
// attempt, which AnnotationRetry takes. The time is zero if the node is not held back, or holds a grant.
func BackOff(policy *v1alpha1.RebootPolicy, n *Node, now time.Time) (until time.Time, attempt int64) {
	a := attempts{policy: policy, now: now, interval: DefaultRebootInterval}
	return a.retryAt(n), a.lastNumber(n)
}

// retryAt returns when the next attempt of a node may begin, or zero if it may begin now or one is
// under way.
func (a attempts) retryAt(n *Node) time.Time {
	until, _ := a.backOff(n)
	if until = timing.Latest(until, a.triesFrom(n), a.rested(n)); !a.now.Before(until) || n.Outstanding() {
		return time.Time{}
	}
	return until
}

// unused reports whether the node's last grant ended without a reboot: its agent or a before-hook
// did not answer, a hook refused, its host rebooted by itself, or the Node refused all writes. Such
// a node is tried again at once or after a fixed time, no matter how often that failed.
func (a attempts) unused(n *Node) bool {
	if n.silent() || n.hookRefused() || n.crashed() {
		return true
	}
	past := a.last(n)
	return past != nil && past.Result == v1alpha1.RebootWithdrawn
}

// last returns the history's newest entry for the node, or nil.
func (a attempts) last(n *Node) *v1alpha1.PastReboot {
	history := a.policy.Status.History
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Node == n.Name && history[i].Result != v1alpha1.RebootUnexpected {
			return &history[i]
		}
	}
	return nil
}

func lastFailed(reason v1alpha1.Reason, message string) string {
	failed := "the last attempt failed (" + string(reason) + ")"
	if message == "" {
		return failed
	}
	return failed + ": " + strings.TrimSuffix(message, ".")
}

// failuresOf returns the nodes whose last attempt failed, by name. Reboots in progress are left
// out, because they have their own deadline.
func failuresOf(d *Draft) []Failure {
	var failures []Failure
	for _, n := range d.f.governed {
		if !n.NeedsReboot() || d.f.held(n) {
			continue
		}
		f := Failure{Node: n.Name}
		switch {
		case n.failed():
			f.Reason, f.Message = n.Progress.Reason, n.Progress.Message
		case n.hookRefused():
			f.Reason, f.Message = n.Grant.Reason, n.Grant.Message
		case n.silent():
			f.Reason, f.Message = n.Grant.Reason, "the agent did not act on the last grant"
		default:
			continue
		}
		f.RetryAt = d.f.attempts.retryAt(n)
		failures = append(failures, f)
	}
	slices.SortFunc(failures, func(a, b Failure) int { return cmp.Compare(a.Node, b.Node) })
	return failures
}
