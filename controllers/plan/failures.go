package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Halt is what condition Halted of a policy should be.
type Halt struct {
	Halted  bool
	Reason  v1alpha1.Reason
	Message string
}

// ResumeHint follows who failed in condition Halted: the one command that resumes the policy.
func ResumeHint(policy string) string {
	return fmt.Sprintf(`; fix them, then run: kubectl annotate rebootpolicy %s %s="what was fixed"`, policy, v1alpha1.AnnotationResume)
}

// attempts are those to reboot nodes under one policy, and what follows where they failed.
type attempts struct {
	policy   *v1alpha1.RebootPolicy
	now      time.Time
	interval time.Duration
}

// halt counts the nodes that failed since the last success, or since an administrator resumed the policy. Once halted a
// policy stays so until it is resumed.
func (a attempts) halt(governed []*Node, reboots []Reboot) Halt {
	if value, resumed := a.policy.Annotations[v1alpha1.AnnotationResume]; resumed {
		return Halt{Reason: v1alpha1.ReasonResumed, Message: "resumed: " + message.Shorten(maxMessage, cmp.Or(value, "no reason given"))}
	}
	current := meta.FindStatusCondition(a.policy.Status.Conditions, v1alpha1.ConditionHalted)
	if current != nil && current.Status == metav1.ConditionTrue {
		return Halt{Halted: true, Reason: v1alpha1.ReasonTooManyFailures, Message: strings.TrimSuffix(current.Message, ResumeHint(a.policy.Name))}
	}
	from := timing.Latest(LastReboot(a.policy, a.now), a.resumedAt()) // a success in the future would hide every failure until then
	failed := a.failedSince(from, governed, reboots)
	if most := a.policy.Spec.MaxFailuresOrDefault(); len(failed) >= int(most) {
		return Halt{Halted: true, Reason: v1alpha1.ReasonTooManyFailures, Message: fmt.Sprintf(
			"%s failed since the last success (maxFailures is %d): %s", message.Count(len(failed), "node", "nodes"), most, someOf(failed))}
	}
	return quiet(current)
}

// quiet keeps reason Resumed and its message, because failures count from there.
func quiet(current *metav1.Condition) Halt {
	if current != nil && current.Reason == string(v1alpha1.ReasonResumed) {
		return Halt{Reason: v1alpha1.ReasonResumed, Message: current.Message}
	}
	return Halt{Reason: v1alpha1.ReasonHealthy}
}

// lost are the nodes of a ring whose Nodes were deleted in their reboots. They count until a node of the ring comes back, or an
// administrator resumes the policy.
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

// resumedAt is when an administrator last resumed the policy. Zero: it was not resumed, or the clock of the leader that wrote it was ahead.
func (a attempts) resumedAt() time.Time {
	if at := resumedAt(a.policy); hasCome(at, a.now) {
		return at
	}
	return time.Time{}
}

// resumedAt is when an administrator last resumed the policy, by the clock of the leader that wrote it. Zero: it was not resumed.
func resumedAt(policy *v1alpha1.RebootPolicy) time.Time {
	current := meta.FindStatusCondition(policy.Status.Conditions, v1alpha1.ConditionHalted)
	if current != nil && current.Reason == string(v1alpha1.ReasonResumed) {
		return current.LastTransitionTime.Time
	}
	return time.Time{}
}

// failedSince names the nodes that failed after an instant: an attempt that was given up, a deadline overrun, or a Node deleted in its
// reboot. Each node is one failure, however much of its record reports it.
func (a attempts) failedSince(from time.Time, governed []*Node, reboots []Reboot) []string {
	reasons := map[string]v1alpha1.Reason{}
	for _, n := range governed {
		switch {
		case !n.NeedsReboot():
		case n.hookRefused() && n.Grant.At.After(from):
			reasons[n.Name] = n.Grant.Reason
		case n.failedTry(): // the budget may never have let it succeed
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

// lostNode reports whether the Node was deleted in its reboot after an instant.
func (a attempts) lostNode(past v1alpha1.PastReboot, from time.Time) bool {
	return past.Reason == v1alpha1.ReasonNodeGoneInReboot && past.EndedAt.After(from) && hasCome(past.EndedAt.Time, a.now)
}

// ended is when the last attempt of a node ended, by the node's own clock. Where that is off, the manager's clock bounds it. A failure
// in the future would outlive every resume, and hold its node back longer than any other. One before its grant would neither count nor
// hold the node back. The bounds come from the grant, not from the present time: the answer must not change when time passes.
func (a attempts) ended(n *Node) (earliest, latest time.Time) {
	at, g, longest := n.Progress.At.Time, n.Grant, longestDrain(a.policy)
	past := a.last(n)
	switch {
	case past != nil && past.Seq == n.Progress.Seq && at.After(past.EndedAt.Time) && hasCome(past.EndedAt.Time, a.now):
		return past.EndedAt.Time, past.EndedAt.Time
	case g == nil && at.Sub(a.now) > clockOff:
		return time.Time{}, time.Time{}
	case g != nil && g.Seq > n.Progress.Seq && at.Sub(g.At.Time) > clockOff: // it was over before the next one was granted
		return time.Time{}, g.At.Time
	case g != nil && g.Seq == n.Progress.Seq && (at.Sub(g.At.Time) > longest+clockOff || g.At.Sub(at) > clockOff):
		return g.At.Time, g.At.Add(longest)
	}
	return at, at
}

// longestDrain is how long after its grant a drain is over, one way or the other.
func longestDrain(policy *v1alpha1.RebootPolicy) time.Duration {
	spec := policy.Spec.DrainOrDefault()
	return startTimeout + spec.LeadTimeOrDefault() + spec.TimeoutOrDefault() + spec.VolumeDetachTimeoutOrDefault()
}

const (
	firstBackOff = 5 * time.Minute
	lastBackOff  = 6 * time.Hour
	// silentBackOff holds back a node whose agent is dead, so that it does not take a slot again and again.
	silentBackOff = 15 * time.Minute
	// DefaultRebootInterval is the least time between a node's return from a granted reboot and its next grant. It bounds how often a
	// node is rebooted whose need never ends, whatever makes it.
	DefaultRebootInterval = 30 * time.Minute
	// refusedBackOff holds back a Node that refuses every write. It lasts while the history has the attempt.
	refusedBackOff = 30 * time.Minute
)

// backingOff holds a node back after an attempt that failed: 5 minutes, doubling to 6 hours, until a reboot succeeds. It also keeps
// the interval after a reboot that succeeded, unless an administrator asks for the next one.
func backingOff(v view, n *Node) *Blocked {
	if until := v.attempts.rested(n); v.Now.Before(until) && !Urgent(v.Policy, n) {
		return blocked(v1alpha1.ReasonBackingOff, "the node is back from its last reboot since %s; the next may begin %s after that, at %s, and `kubectl reboot request %s` starts it now",
			v.instant(n.Grant.At.Time), v.attempts.interval, v.instant(until), n.Name).until(until)
	}
	until, why := v.attempts.backOff(n)
	if !v.Now.Before(until) {
		return nil
	}
	return blocked(v1alpha1.ReasonBackingOff, "%s; the next attempt is due %s", why, v.instant(until)).until(until)
}

// rested is until when the interval after the last reboot of a node lasts. Zero: it was not rebooted, or an administrator's
// annotation asks for another reboot.
func (a attempts) rested(n *Node) time.Time {
	_, requested := v1alpha1.RequestIn(n.Annotations)
	if g := n.Grant; g != nil && g.State == protocol.GrantFinished && !requested {
		return g.At.Add(a.interval)
	}
	return time.Time{}
}

// backOff is until when a node is held back, and why; zero: it is not.
func (a attempts) backOff(n *Node) (until time.Time, why string) {
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

// triesFrom is when the next try of a node with a closed budget is due. Zero: at once.
func (a attempts) triesFrom(n *Node) time.Time {
	if !n.failedTry() {
		return time.Time{}
	}
	return a.retriedFrom(n)
}

// retriedFrom is when the back-off after the failed attempt of a node ends.
func (a attempts) retriedFrom(n *Node) time.Time {
	_, ended := a.ended(n)
	return ended.Add(timing.Backoff(int(n.Progress.Failures), firstBackOff, lastBackOff))
}

// unused reports whether the last grant of a node ended without a reboot. Its agent or a before-hook was silent, a hook refused, its host went
// down by itself, or the Node took no write. Such a node is tried again at once or after a fixed time, however often that was in vain.
func (a attempts) unused(n *Node) bool {
	if n.silent() || n.hookRefused() || n.crashed() {
		return true
	}
	past := a.last(n)
	return past != nil && past.Result == v1alpha1.RebootWithdrawn
}

// last is how the last granted reboot of a node ended. Nil: the history has none of it.
func (a attempts) last(n *Node) *v1alpha1.PastReboot {
	history := a.policy.Status.History
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Node == n.Name {
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

// failuresOf returns the nodes whose last attempt failed, by name. A reboot in progress has a
// deadline of its own.
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
		f.RetryAt, _ = d.f.attempts.backOff(n)
		failures = append(failures, f)
	}
	slices.SortFunc(failures, func(a, b Failure) int { return cmp.Compare(a.Node, b.Node) })
	return failures
}
