package record

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

const (
	// clockOff is the largest clock difference between a node and the manager, or between two
	// leaders, that we trust. Timestamps further off are ignored.
	clockOff = 5 * time.Minute
	// clockAhead is the furthest that a time may be in the future. It is longer than clockOff,
	// because a phase may begin late although all clocks are right: after an outage of the API
	// server, for example.
	clockAhead = time.Hour
)

// possible reports whether a time on a Node can be between earliest and latest, which the manager
// knows itself.
func possible(at, earliest, latest time.Time) bool {
	return earliest.Sub(at) <= clockOff && at.Sub(latest) <= clockAhead
}

// believed returns a time on a Node if it is possible, and otherwise latest. So a wrong clock can
// neither make a deadline pass at once nor push it out.
func believed(at, earliest, latest time.Time) time.Time {
	if possible(at, earliest, latest) {
		return at
	}
	return latest
}

// HasCome reports whether a time that a manager wrote has come. The clocks of two leaders may
// differ by clockOff.
func HasCome(at, now time.Time) bool { return at.Sub(now) <= clockOff }

// InFuture reports whether a time is so far in the future that the clock which gave it was ahead.
func InFuture(at, now time.Time) bool { return at.Sub(now) > clockAhead }

// Dated sets the time of a ledger entry to now if it is too far in the future: the clock of the
// leader that wrote it was ahead, and no deadline could count from it.
func Dated(e v1alpha1.LedgerEntry, now time.Time) v1alpha1.LedgerEntry {
	if InFuture(e.At.Time, now) {
		e.At = metav1.NewTime(now)
	}
	return e
}

// History returns the entries of a policy's history whose time has come. A leader whose clock was
// ahead may have written others.
func History(policy *v1alpha1.RebootPolicy, now time.Time) iter.Seq[v1alpha1.PastReboot] {
	return func(yield func(v1alpha1.PastReboot) bool) {
		for _, past := range policy.Status.History {
			if HasCome(past.EndedAt.Time, now) && !yield(past) {
				return
			}
		}
	}
}

// Lasted returns how long a phase lasted. It returns nil if the clocks of node and manager
// contradict each other, or if that is longer than most, the time since the grant.
func Lasted(from, to time.Time, most time.Duration) *metav1.Duration {
	if from.IsZero() || to.Before(from) || to.Sub(from) > most+clockOff {
		return nil
	}
	return &metav1.Duration{Duration: to.Sub(from).Round(time.Second)}
}

// LastReboot returns when the operator last confirmed a reboot, or zero if unknown. If the clock of
// the leader that wrote it was ahead, it returns the latest credible time in the history.
func LastReboot(policy *v1alpha1.RebootPolicy, now time.Time) time.Time {
	var last time.Time
	if at := policy.Status.LastRebootAt; at != nil && HasCome(at.Time, now) {
		last = at.Time
	}
	for past := range History(policy, now) {
		if past.Result == v1alpha1.RebootSucceeded {
			last = timing.Latest(last, past.EndedAt.Time)
		}
	}
	return last
}

// Judge returns the node. If its record is not credible, it returns a copy whose record counts as
// unreadable, and the time from which the record is credible, or zero if that never comes.
func (n Numbers) Judge(node *Node, now time.Time) (judged *Node, from time.Time) {
	why, from := n.incredible(node, now)
	if why == "" {
		return node, time.Time{}
	}
	return node.disbelieved(why), from
}

// Resumed returns when an administrator last resumed the policy, or zero if never or if that
// time is in the future.
func Resumed(policy *v1alpha1.RebootPolicy, now time.Time) time.Time {
	if at := resumedAt(policy); HasCome(at, now) {
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

// NextComes returns the next time at which something that an earlier leader wrote into the policy's
// status becomes credible, or zero if nothing does.
func NextComes(policy *v1alpha1.RebootPolicy, now time.Time) time.Time {
	written := []time.Time{resumedAt(policy)}
	if last := policy.Status.LastRebootAt; last != nil {
		written = append(written, last.Time)
	}
	for _, past := range policy.Status.History {
		written = append(written, past.EndedAt.Time)
	}
	var next time.Time
	for _, at := range written {
		if from := at.Add(-clockOff); from.After(now) {
			next = timing.Earliest(next, from)
		}
	}
	return next
}

// incredible returns why the record of a node outside the ledger is ignored, and until when, or ""
// if it is credible. An outstanding grant dated in the future is not ignored: its agent acts on it,
// so a ledger has to hold it, which gives it a time.
func (n Numbers) incredible(node *Node, now time.Time) (why string, until time.Time) {
	latest := now.Add(clockAhead)
	switch g, p := node.Grant, node.Progress; {
	case !n.credible(node.Seen()):
		return fmt.Sprintf("the record has number %d, which no policy has assigned", node.Seen()), time.Time{}
	case g != nil && g.At.After(latest) && !node.Outstanding():
		return fmt.Sprintf("the grant is dated %s, more than an hour in the future", timing.Instant(g.At.Time)), g.At.Add(-clockAhead)
	case p != nil && p.At.After(latest) && node.GrantSeq() < p.Seq: // otherwise the grant's own time bounds it
		return fmt.Sprintf("the progress is dated %s, more than an hour in the future", timing.Instant(p.At.Time)), p.At.Add(-clockAhead)
	}
	return "", time.Time{}
}

const (
	// mostNumbers is more than any policy ever counts to. New numbers are higher than all that
	// nodes show, so one node with a number far above the ledgers' would raise the numbers of the
	// whole policy.
	mostNumbers = 1 << 32
	// lastNumber is the largest credible number. It leaves room for new numbers above it.
	lastNumber = 1 << 62
)

// Numbers tells which grant numbers are credible.
type Numbers struct {
	// given is the highest number in all ledgers.
	given int64
	// far are the numbers on nodes that are far above given, sorted. A policy that was deleted and
	// applied again begins at 0.
	far []int64
}

// NumbersOf returns which numbers are credible, given the highest in all ledgers.
func NumbersOf(nodes []*Node, given int64) Numbers {
	n := Numbers{given: given}
	for _, node := range nodes {
		if seen := node.Seen(); seen-mostNumbers > n.given {
			n.far = append(n.far, seen)
		}
	}
	slices.Sort(n.far)
	return n
}

// credible reports whether a policy may have given the number: it is not far above the ledgers'
// numbers, or another node shows one near it, as the nodes of a former policy do. One node alone
// cannot raise the numbers.
func (n Numbers) credible(number int64) bool {
	switch {
	case number <= n.given:
		return true
	case number > lastNumber:
		return false
	case number-mostNumbers <= n.given:
		return true
	}
	i, _ := slices.BinarySearch(n.far, number)
	near := func(other int) bool {
		return other >= 0 && other < len(n.far) && max(number-n.far[other], n.far[other]-number) <= mostNumbers
	}
	return near(i-1) || near(i+1)
}

// MayFollow reports whether a number in an answer may become the next one after seq.
func MayFollow(number, seq int64) bool { return number-seq < mostNumbers }

// CredibleFrom returns the next time at which a timestamp from the node's clock is no longer too
// far ahead, or zero if none is.
func (n *Node) CredibleFrom(now time.Time) time.Time {
	reported := [...]time.Time{n.ReadySince, n.MaintenanceSince, {}}
	if n.Progress != nil {
		reported[2] = n.Progress.At.Time
	}
	var next time.Time
	for _, at := range reported {
		if from := at.Add(-clockOff); from.After(now) {
			next = timing.Earliest(next, from)
		}
	}
	return next
}

// disbelieved returns a copy of the node whose record counts as unreadable.
func (n *Node) disbelieved(why string) *Node {
	other := *n
	other.Unreadable = fmt.Sprintf("%s; to remove it: kubectl annotate node %s %s- %s- %s-",
		why, n.Name, v1alpha1.AnnotationGrant, v1alpha1.AnnotationProgress, v1alpha1.AnnotationHooks)
	other.Record = protocol.Record{ProgressErr: errors.New(why)}
	other.Incredible = true
	return &other
}
