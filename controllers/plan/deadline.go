package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// DueAt is when the deadline of the node's need ends. Zero: it needs no reboot, its policy has no deadline, or it is unknown when the
// need began.
func DueAt(policy *v1alpha1.RebootPolicy, n *Node) time.Time {
	if !n.NeedsReboot() {
		return time.Time{}
	}
	return policy.Spec.Deadline.Ends(n.WaitsSince())
}

// reached reports whether an instant is known and has come.
func reached(due, now time.Time) bool { return !due.IsZero() && !now.Before(due) }

// IgnoresWindowsFrom is when windows cease to count for the node: at the end of its deadline, if the policy ignores them from then
// on. Zero: they always count.
func IgnoresWindowsFrom(policy *v1alpha1.RebootPolicy, n *Node) time.Time {
	if policy.Spec.Deadline.IgnoresWindows() {
		return DueAt(policy, n)
	}
	return time.Time{}
}

// ignoresWindows reports whether windows do not count for the node now.
func (v view) ignoresWindows(n *Node) bool { return reached(IgnoresWindowsFrom(v.Policy, n), v.Now) }

// DeadlinesHealth is what is known of the deadlines of a policy's nodes.
type DeadlinesHealth struct {
	// Near is how many nodes have needed a reboot for three quarters of the time that they have, Passed how many for all of it.
	Near, Passed int32
	// Reason and Message are those of condition DeadlineNear.
	Reason  v1alpha1.Reason
	Message string
	// Next is when the next deadline comes near or ends, and PassedAt when the last one of Passed ended. Zero: none does, or has.
	Next, PassedAt time.Time
}

// maxDeadlines is how many nodes condition DeadlineNear names.
const maxDeadlines = 3

// deadlinesOf is what condition DeadlineNear should be. Nil: there is no deadline, and no such condition.
func deadlinesOf(f *fleet) *DeadlinesHealth {
	deadline := f.Policy.Spec.Deadline
	if deadline == nil {
		return nil
	}
	type node struct {
		name string
		due  time.Time
	}
	var listed []node
	r := &DeadlinesHealth{Reason: v1alpha1.ReasonInTime, Message: "no node has needed a reboot for three quarters of spec.deadline"}
	for _, n := range f.governed {
		due := DueAt(f.Policy, n)
		if due.IsZero() {
			continue
		}
		switch near := deadline.NearFrom(due); {
		case f.Now.Before(near):
			r.Next = timing.Earliest(r.Next, near)
			continue
		case f.Now.Before(due):
			r.Next = timing.Earliest(r.Next, due)
			r.Near++
		default:
			r.Passed++
			r.PassedAt = timing.Latest(r.PassedAt, due)
		}
		listed = append(listed, node{n.Name, due})
	}
	if len(listed) == 0 {
		return r
	}
	slices.SortFunc(listed, func(a, b node) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.name, b.name)) })
	r.Reason, r.Message = v1alpha1.ReasonDeadlineNear, message.Count(int(r.Near), "node", "nodes")+" close to the deadline"
	if r.Passed > 0 {
		r.Reason = v1alpha1.ReasonDeadlinePassed
		r.Message = fmt.Sprintf("%s past the deadline, %d close to it", message.Count(int(r.Passed), "node", "nodes"), r.Near)
	}
	r.Message += ": " + message.List(listed, maxDeadlines, func(n node) string {
		if f.Now.Before(n.due) {
			return n.name + " by " + f.instant(n.due)
		}
		return n.name + " since " + f.instant(n.due)
	})
	return r
}
