package record

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// DueAt returns the node's deadline. It returns zero if the node needs no reboot, the policy has no
// deadline, or the start of the need is unknown.
func DueAt(policy *v1alpha1.RebootPolicy, n *Node) time.Time {
	if !n.NeedsReboot() {
		return time.Time{}
	}
	began := n.WaitsSince()
	if policy.Spec.Deadline == nil || began.UTC().Year() < v1alpha1.FirstYear { // an earlier year means that the clock was never set
		return time.Time{}
	}
	return began.Add(policy.Spec.Deadline.Duration)
}

// Reached reports whether a time is known and has come.
func Reached(due, now time.Time) bool { return !due.IsZero() && !now.Before(due) }

// AtOnce is earlier than the time of any plan.
var AtOnce = time.Unix(0, 0)

// IgnoredFrom returns the time from which the node ignores windows or blackouts, as far as
// spec.urgent allows it: at once for an urgent request, or at its deadline. It returns zero if they
// always count.
func IgnoredFrom(policy *v1alpha1.RebootPolicy, n *Node, hours v1alpha1.UrgentIgnore) time.Time {
	urgent := policy.Spec.UrgentOrDefault()
	switch {
	case n.Urgent && urgent.Requested.Ignores(hours):
		return AtOnce
	case urgent.Overdue.Ignores(hours):
		return DueAt(policy, n)
	}
	return time.Time{}
}

// Urgent reports whether the node has an urgent request that the policy allows.
func Urgent(policy *v1alpha1.RebootPolicy, n *Node) bool {
	return n.Urgent && policy.Spec.UrgentOrDefault().Requested != nil
}
