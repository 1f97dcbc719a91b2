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
	if !w.Blackout || Urgent(v.Policy, n) {
		return nil
	}
	o, until, due := blocked(v1alpha1.ReasonBlackout, "blackout %s is in force", w.Name), w.OpensAt, IgnoresWindowsFrom(v.Policy, n)
	switch {
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
	o.Message += notUrgent(v, n)
	return o.until(until)
}

func windowClosed(v view, n *Node) *Blocked {
	if v.Window.Open || Urgent(v.Policy, n) || v.ignoresWindows(n) {
		return nil
	}
	opens, due := v.opening(v.Window.OpensAt), IgnoresWindowsFrom(v.Policy, n)
	until := timing.Earliest(v.Window.OpensAt, due)
	if !due.IsZero() && until.Equal(due) {
		opens = v.atDeadline(due)
	}
	return blocked(v1alpha1.ReasonWindowClosed, "no window is open%s%s", opens, notUrgent(v, n)).until(until)
}

// Urgent reports whether windows and blackouts do not count for the node: its reboot was requested as urgent, and the policy
// allows that.
func Urgent(policy *v1alpha1.RebootPolicy, n *Node) bool {
	return n.Urgent && policy.Spec.AllowsUrgentRequests()
}

// notUrgent states why an urgent request waits like any other.
func notUrgent(v view, n *Node) string {
	if !n.Urgent {
		return ""
	}
	return fmt.Sprintf("; the request is urgent, but policy %s does not allow that: spec.requests.urgent is not Allow", v.name)
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
	if closes.IsZero() || v.held(n) || Urgent(v.Policy, n) || v.ignoresWindows(n) || !v.Now.Add(v.reserve).After(closes) {
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
