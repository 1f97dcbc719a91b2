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

func blackout(v view, n *Node) *Blocked {
	w := v.Window
	if !w.Blackout || v.ignores(n, v1alpha1.UrgentIgnoresBlackouts) {
		return nil
	}
	o, until := blocked(v1alpha1.ReasonBlackout, "blackout %s is in force", w.Name), w.OpensAt
	due := IgnoredFrom(v.Policy, n, v1alpha1.UrgentIgnoresWindows)
	switch passes := IgnoredFrom(v.Policy, n, v1alpha1.UrgentIgnoresBlackouts); {
	case !passes.IsZero() && timing.Earliest(w.OpensAt, passes).Equal(passes) && (due.Equal(passes) || passes.Before(w.Next)):
		o.Message += v.atDeadline(passes)
		until = passes
	case due.IsZero() || w.Next.IsZero() || !w.OpensAt.IsZero() && w.OpensAt.Before(due):
		o.Message += v.opening(until)
	case !w.Next.Before(due): // windows do not count any more when this blackout ends
		o.Message += ", until " + v.instant(w.Next) + " or longer"
		until = w.Next
	default:
		o.Message += v.atDeadline(due) + ", or later" // another blackout may follow
		until = due
	}
	if w.BlackoutReason != "" {
		o.Message += ": " + w.BlackoutReason
	}
	o.Message += notUrgent(v, n, "blackouts")
	return o.until(until)
}

func windowClosed(v view, n *Node) *Blocked {
	if v.Window.Open || v.ignores(n, v1alpha1.UrgentIgnoresWindows) {
		return nil
	}
	opens, due := v.opening(v.Window.OpensAt), IgnoredFrom(v.Policy, n, v1alpha1.UrgentIgnoresWindows)
	until := timing.Earliest(v.Window.OpensAt, due)
	if !due.IsZero() && until.Equal(due) {
		opens = v.atDeadline(due)
	}
	return blocked(v1alpha1.ReasonWindowClosed, "no window is open%s%s", opens, notUrgent(v, n, "windows")).until(until)
}

// Urgent reports whether the node has an urgent request that the policy allows.
func Urgent(policy *v1alpha1.RebootPolicy, n *Node) bool {
	return n.Urgent && policy.Spec.UrgentOrDefault().Requested != nil
}

// notUrgent explains why an urgent request waits like any other.
func notUrgent(v view, n *Node, hours string) string {
	if !n.Urgent {
		return ""
	}
	return fmt.Sprintf("; the request is urgent, but spec.urgent.requested of policy %s does not ignore %s", v.name, hours)
}

func (v view) atDeadline(due time.Time) string {
	return "; this node may start " + v.instant(due) + ", at its deadline"
}

func (v view) opening(at time.Time) string {
	if at.IsZero() {
		return "; none opens within a year"
	}
	return "; the next reboot may start " + v.instant(at)
}

// AssumedReboot is what drain and reboot together are taken to last before the policy has seen one.
const AssumedReboot = 5 * time.Minute

// Reserve is how much of a window has to be left to begin a reboot. It is what one takes, but at most all of its time-outs and half of
// the longest window. Otherwise slow reboots, or a node whose clock is wrong, could keep the policy from making another one, and then
// its history would never change.
func Reserve(policy *v1alpha1.RebootPolicy) time.Duration {
	var longest time.Duration
	for _, w := range policy.Spec.Windows {
		longest = max(longest, w.Duration.Duration)
	}
	drain, reboot := policy.Spec.DrainOrDefault(), policy.Spec.RebootOrDefault()
	most := drain.LeadTimeOrDefault() + drain.TimeoutOrDefault() + drain.VolumeDetachTimeoutOrDefault() + reboot.TimeoutOrDefault()
	takes := min(rebootTakes(policy.Status.History, drain.LeadTimeOrDefault()), most)
	if longest > 0 {
		takes = min(takes, longest/2)
	}
	return takes
}

// rebootTakes is what drain and reboot together last at most in nine cases of ten, by the policy's history. No drain is shorter
// than the lead time, which the history may not show yet.
func rebootTakes(history []v1alpha1.PastReboot, lead time.Duration) time.Duration {
	var took []time.Duration
	for _, past := range history {
		if past.Result == v1alpha1.RebootSucceeded && past.Drain != nil && past.Reboot != nil {
			took = append(took, max(past.Drain.Duration, lead)+past.Reboot.Duration)
		}
	}
	if len(took) == 0 {
		return lead + AssumedReboot
	}
	slices.Sort(took)
	return took[(len(took)*9+9)/10-1]
}

// windowTooShort keeps a reboot from being begun that would end after the window. A node that holds a grant keeps it: the
// window was long enough then, and hooks may have taken their time since.
func windowTooShort(v view, n *Node) *Blocked {
	closes := v.Window.ClosesAt
	if closes.IsZero() || v.held(n) || v.ignores(n, v1alpha1.UrgentIgnoresWindows) || !v.Now.Add(v.reserve).After(closes) {
		return nil
	}
	return blocked(v1alpha1.ReasonWindowTooShort, "no reboot is begun so shortly before the end: the window closes %s, "+
		"and status.history shows how long a drain and a reboot take", v.instant(closes))
}

// DueAt is when the deadline of the node's need ends. Zero: it needs no reboot, its policy has no deadline, or it is unknown when the
// need began.
func DueAt(policy *v1alpha1.RebootPolicy, n *Node) time.Time {
	if !n.NeedsReboot() {
		return time.Time{}
	}
	began := n.WaitsSince()
	if policy.Spec.Deadline == nil || began.UTC().Year() < v1alpha1.FirstYear { // a clock that shows an earlier year was never set
		return time.Time{}
	}
	return began.Add(policy.Spec.Deadline.Duration)
}

// reached reports whether an instant is known and has come.
func reached(due, now time.Time) bool { return !due.IsZero() && !now.Before(due) }

// atOnce is before every time that a plan is made at.
var atOnce = time.Unix(0, 0)

// IgnoredFrom returns when windows or blackouts cease to count for the node: at once for an urgent request, or at its deadline, as far
// as spec.urgent allows it. It returns the zero time if they always count.
func IgnoredFrom(policy *v1alpha1.RebootPolicy, n *Node, hours v1alpha1.UrgentIgnore) time.Time {
	urgent := policy.Spec.UrgentOrDefault()
	switch {
	case n.Urgent && urgent.Requested.Ignores(hours):
		return atOnce
	case urgent.Overdue.Ignores(hours):
		return DueAt(policy, n)
	}
	return time.Time{}
}

// ignores reports whether windows or blackouts do not count for the node now.
func (v view) ignores(n *Node, hours v1alpha1.UrgentIgnore) bool {
	return reached(IgnoredFrom(v.Policy, n, hours), v.Now)
}

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
		switch near := due.Add(-deadline.Duration / 4); {
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
