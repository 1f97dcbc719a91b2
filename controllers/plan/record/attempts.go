package record

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Attempts evaluates past attempts to reboot nodes under one policy.
type Attempts struct {
	Policy   *v1alpha1.RebootPolicy
	Now      time.Time
	Interval time.Duration
}

// Ended returns when the last attempt of a node ended, as the earliest and the latest possible
// time. The node's own clock says when, unless the manager's times rule that out. A failure in the
// future would outlive every resume and hold the node back longer than others, and one before its
// grant would not count at all. The bounds do not depend on the present time, so the answer stays
// the same.
func (a Attempts) Ended(n *Node) (earliest, latest time.Time) {
	at, g, longest := n.Progress.At.Time, n.Grant, LongestDrain(a.Policy)
	past := a.last(n)
	switch {
	case past != nil && past.Seq == n.Progress.Seq && at.After(past.EndedAt.Time) && HasCome(past.EndedAt.Time, a.Now):
		return past.EndedAt.Time, past.EndedAt.Time
	case g == nil && at.Sub(a.Now) > clockOff:
		return time.Time{}, time.Time{}
	case g != nil && g.Seq > n.Progress.Seq && at.Sub(g.At.Time) > clockOff: // the attempt ended before the next grant
		return time.Time{}, g.At.Time
	case g != nil && g.Seq == n.Progress.Seq && (at.Sub(g.At.Time) > longest+clockOff || g.At.Sub(at) > clockOff):
		return g.At.Time, g.At.Add(longest)
	}
	return at, at
}

// LongestDrain returns the time after a grant by which its drain has ended, in any way.
func LongestDrain(policy *v1alpha1.RebootPolicy) time.Duration {
	spec := policy.Spec.DrainOrDefault()
	return StartTimeout + spec.LeadTimeOrDefault() + spec.TimeoutOrDefault() + spec.VolumeDetachTimeoutOrDefault()
}

const (
	// StartTimeout is the time after which a grant is cancelled if the agent has not begun. A
	// running agent begins within a second.
	StartTimeout = 5 * time.Minute
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

// HookBackOff is the pause before the next attempt after hooks refused, so that the node does not
// take a slot again and again.
const HookBackOff = 15 * time.Minute

// Rested returns when the interval after the node's last reboot ends. It returns zero if the node
// was not rebooted, or an administrator's annotation requests another reboot or ends the interval.
func (a Attempts) Rested(n *Node) time.Time {
	_, requested := v1alpha1.RequestIn(n.Annotations)
	if g := n.Grant; g != nil && g.State == protocol.GrantFinished && !requested && !a.retriedNow(n) {
		return g.At.Add(a.Interval)
	}
	return time.Time{}
}

// BackOff returns until when a node is held back, and why, or zero if it is not.
func (a Attempts) BackOff(n *Node) (until time.Time, why string) {
	if a.retriedNow(n) {
		return time.Time{}, ""
	}
	if past := a.last(n); past != nil && past.Result == v1alpha1.RebootWithdrawn && HasCome(past.EndedAt.Time, a.Now) {
		return past.EndedAt.Add(refusedBackOff), LastFailed(past.Reason, past.Message)
	}
	if n.Silent() {
		return n.Grant.At.Add(silentBackOff), "the agent did not act on the last grant"
	}
	if n.HookRefused() {
		return n.Grant.At.Add(HookBackOff), LastFailed(n.Grant.Reason, n.Grant.Message)
	}
	if p := n.Progress; n.HasFailed() && !n.FailedTry() {
		return a.retriedFrom(n), LastFailed(p.Reason, p.Message)
	}
	return time.Time{}, ""
}

// TriesFrom returns when the next try of a node with a closed budget is due. Zero means at once.
func (a Attempts) TriesFrom(n *Node) time.Time {
	if !n.FailedTry() || a.retriedNow(n) {
		return time.Time{}
	}
	return a.retriedFrom(n)
}

// retriedFrom returns when the back-off after the node's failed attempt ends.
func (a Attempts) retriedFrom(n *Node) time.Time {
	_, ended := a.Ended(n)
	return ended.Add(backOff(n))
}

// freedFactor is the part of the back-off that lasts although the pods that made a drain time out may
// go. Budgets that open only after the node is uncordoned would otherwise cause one drain after the
// other.
const freedFactor = 10

// backOff returns the pause after the node's failed attempt. It is shorter if the agent reports that no
// pod would hold up a drain now, although such pods made the last one time out.
func backOff(n *Node) time.Duration {
	p, r := n.Progress, n.PreflightReport
	pause := timing.Backoff(int(p.Failures), firstBackOff, lastBackOff)
	if p.Budgeted && r != nil && r.Failed == p.Seq && r.BootID == n.BootID &&
		r.Refused == nil && r.Guarded == nil && r.Closed == nil && r.Kept == nil && r.Problem == "" {
		return pause / freedFactor
	}
	return pause
}

// lastNumber returns the number of the last attempt to reboot a node, or 0 without an attempt.
func (a Attempts) lastNumber(n *Node) int64 {
	number := n.Seen()
	if past := a.last(n); past != nil {
		number = max(number, past.Seq)
	}
	return number
}

// retriedNow reports whether an administrator has ended the back-off after the last attempt. The
// next attempt has another number, so nothing has to remember that this one was retried.
func (a Attempts) retriedNow(n *Node) bool {
	number := a.lastNumber(n)
	return number > 0 && n.Annotations[v1alpha1.AnnotationRetry] == strconv.FormatInt(number, 10)
}

// RetryHint is the end of a sentence about a back-off: the command that ends it.
func (a Attempts) RetryHint(n *Node) string {
	return fmt.Sprintf("%skubectl annotate node %s %s=%d --overwrite", toRetry, n.Name, v1alpha1.AnnotationRetry, a.lastNumber(n))
}

const toRetry = "; to retry now: "

// WithoutRetryHint cuts the command off a message about a back-off, if it has one.
func WithoutRetryHint(message string) (text string, found bool) {
	text, _, found = strings.Cut(message, toRetry)
	return text, found
}

// BackOff returns until when a node is held back after its last attempt, and the number of that
// attempt, which AnnotationRetry takes. The time is zero if the node is not held back, or holds a
// grant.
func BackOff(policy *v1alpha1.RebootPolicy, n *Node, now time.Time) (until time.Time, attempt int64) {
	a := Attempts{Policy: policy, Now: now, Interval: DefaultRebootInterval}
	return a.RetryAt(n), a.lastNumber(n)
}

// RetryAt returns when the next attempt of a node may begin, or zero if it may begin now or one is
// under way.
func (a Attempts) RetryAt(n *Node) time.Time {
	until, _ := a.BackOff(n)
	if until = timing.Latest(until, a.TriesFrom(n), a.Rested(n)); !a.Now.Before(until) || n.Outstanding() {
		return time.Time{}
	}
	return until
}

// Unused reports whether the node's last grant ended without a reboot: its agent or a before-hook
// did not answer, a hook refused, its host rebooted by itself, or the Node refused all writes. Such
// a node is tried again at once or after a fixed time, no matter how often that failed.
func (a Attempts) Unused(n *Node) bool {
	if n.Silent() || n.HookRefused() || n.crashed() {
		return true
	}
	past := a.last(n)
	return past != nil && past.Result == v1alpha1.RebootWithdrawn
}

// last returns the history's newest entry for the node, or nil.
func (a Attempts) last(n *Node) *v1alpha1.PastReboot {
	history := a.Policy.Status.History
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Node == n.Name && history[i].Result != v1alpha1.RebootUnexpected {
			return &history[i]
		}
	}
	return nil
}

// LastFailed says that the last attempt failed, and why.
func LastFailed(reason v1alpha1.Reason, message string) string {
	failed := "the last attempt failed (" + string(reason) + ")"
	if message == "" {
		return failed
	}
	return failed + ": " + strings.TrimSuffix(message, ".")
}
