package plan

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// What a Node shows is checked against what no node can write: the ledgers, and the manager's own clock.

const (
	// clockOff is how far a node's clock may be off the manager's: from more than that nothing follows.
	clockOff = 5 * time.Minute
	// clockAhead is how far ahead a time may be. It is longer than clockOff, because a phase may begin late although all
	// clocks are right: after an outage of the API server, for example.
	clockAhead = time.Hour
)

// possible reports whether an instant that a Node shows can be between earliest and latest, which the manager knows by itself.
func possible(at, earliest, latest time.Time) bool {
	return earliest.Sub(at) <= clockOff && at.Sub(latest) <= clockAhead
}

// believed is an instant that a Node shows, where it is possible. Otherwise it is latest: no deadline is passed at once, and none is put
// off.
func believed(at, earliest, latest time.Time) time.Time {
	if possible(at, earliest, latest) {
		return at
	}
	return latest
}

// hasCome reports whether an instant that a manager has written has come: the clocks of two leaders differ by up to clockOff.
func hasCome(at, now time.Time) bool { return at.Sub(now) <= clockOff }

// LastReboot is when the operator last confirmed a reboot. Where the clock of the leader that wrote it was ahead, it is the last one of the
// history that has come. Zero: none is known.
func LastReboot(policy *v1alpha1.RebootPolicy, now time.Time) time.Time {
	var last time.Time
	if at := policy.Status.LastRebootAt; at != nil && hasCome(at.Time, now) {
		last = at.Time
	}
	for _, past := range policy.Status.History {
		if past.Result == v1alpha1.RebootSucceeded && hasCome(past.EndedAt.Time, now) {
			last = timing.Latest(last, past.EndedAt.Time)
		}
	}
	return last
}

// incredible states why the record of a node that the ledger does not hold is not believed, and until when; empty: it is believed.
// An outstanding grant of the future is: its agent acts on it, so it has to be in a ledger, which gives it a time.
func (n numbers) incredible(node *Node, now time.Time) (why string, until time.Time) {
	latest := now.Add(clockAhead)
	switch g, p := node.Grant, node.Progress; {
	case !n.credible(node.Seen()):
		return fmt.Sprintf("the record has number %d, which no policy has given", node.Seen()), time.Time{}
	case g != nil && g.At.After(latest) && !node.Outstanding():
		return fmt.Sprintf("the grant is of %s, more than an hour ahead", timing.Instant(g.At.Time)), g.At.Add(-clockAhead)
	case p != nil && p.At.After(latest) && node.GrantSeq() < p.Seq: // otherwise the grant's own time bounds it
		return fmt.Sprintf("the progress is of %s, more than an hour ahead", timing.Instant(p.At.Time)), p.At.Add(-clockAhead)
	}
	return "", time.Time{}
}

const (
	// mostNumbers is more than any policy ever counts to. A new number is above all that a node shows. One node with a number far above
	// the ledgers' would raise the numbers of the whole policy.
	mostNumbers = 1 << 32
	// lastNumber leaves room above it: no node raises the numbers beyond it.
	lastNumber = 1 << 62
)

// numbers are those that records may have.
type numbers struct {
	// given is the highest of all ledgers.
	given int64
	// far are those that nodes show far above it, in order: a policy that is deleted and applied again begins at 0.
	far []int64
}

func numbersOf(s Snapshot) numbers {
	n := numbers{given: max(s.Governor.given, s.Policy.Status.Seq)}
	for _, node := range s.Nodes {
		if seen := node.Seen(); seen-mostNumbers > n.given {
			n.far = append(n.far, seen)
		}
	}
	slices.Sort(n.far)
	return n
}

// credible reports whether a policy may have given the number. It is not far above those of the ledgers, or another node shows one near
// it, as nodes of a former policy do. One node alone cannot make the others follow.
func (n numbers) credible(number int64) bool {
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

// credibleFrom is the next instant at which one that the node's clock has reported is not too far ahead any more; zero: none is.
func (n *Node) credibleFrom(now time.Time) time.Time {
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

// disbelieved is a copy of the node whose record counts as unreadable.
func (n *Node) disbelieved(why string) *Node {
	other := *n
	other.Unreadable = fmt.Sprintf("%s; kubectl annotate node %s %s- %s- %s- removes it",
		why, n.Name, v1alpha1.AnnotationGrant, v1alpha1.AnnotationProgress, v1alpha1.AnnotationHooks)
	other.Record = protocol.Record{ProgressErr: errors.New(why)}
	other.incredible = true
	return &other
}
