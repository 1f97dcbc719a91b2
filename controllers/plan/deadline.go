package plan

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// DueAt is when the deadline of the node's need ends. Zero: it needs no reboot, its policy has no deadline, or nobody knows when the
// need began.
func DueAt(policy *v1alpha1.RebootPolicy, n *Node) time.Time {
	if !n.NeedsReboot() {
		return time.Time{}
	}
	return policy.Spec.Deadline.Ends(n.WaitsSince())
}

// reached reports whether an instant is known and has come.
func reached(due, now time.Time) bool { return !due.IsZero() && !now.Before(due) }

// IgnoresWindowsFrom is from when on windows do not count for the node: from the end of its deadline, where the policy ignores them
// then. Zero: they always count.
func IgnoresWindowsFrom(policy *v1alpha1.RebootPolicy, n *Node) time.Time {
	if d := policy.Spec.Deadline; d == nil || d.ActionOrDefault() != v1alpha1.DeadlineIgnoresWindows {
		return time.Time{}
	}
	return DueAt(policy, n)
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
	// Next is when the next deadline comes near or ends. Zero: none does.
	Next time.Time
}

// maxDeadlines is how many nodes condition DeadlineNear names.
const maxDeadlines = 3
