package plan

import (
	"fmt"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

func blackout(c *choice, n *record.Node) *block.Block {
	w := c.Window
	if !w.Blackout || ignores(c, n, v1alpha1.UrgentIgnoresBlackouts) {
		return nil
	}
	o, until := block.New(v1alpha1.ReasonBlackout, "blackout %s is in force", w.Name), w.OpensAt
	due := record.IgnoredFrom(c.Policy, n, v1alpha1.UrgentIgnoresWindows)
	switch passes := record.IgnoredFrom(c.Policy, n, v1alpha1.UrgentIgnoresBlackouts); {
	case !passes.IsZero() && timing.Earliest(w.OpensAt, passes).Equal(passes) && (due.Equal(passes) || passes.Before(w.Next)):
		o.Message += atDeadline(c, passes)
		until = passes
	case due.IsZero() || w.Next.IsZero() || !w.OpensAt.IsZero() && w.OpensAt.Before(due):
		o.Message += opening(c, until)
	case !w.Next.Before(due): // when this blackout ends, the node is past its deadline and ignores windows
		o.Message += ", until " + c.instant(w.Next) + " or longer"
		until = w.Next
	default:
		o.Message += atDeadline(c, due) + ", or later" // another blackout may follow
		until = due
	}
	if w.BlackoutReason != "" {
		o.Message += ": " + w.BlackoutReason
	}
	o.Message += notUrgent(c, n, "blackouts")
	return o.EndsAt(until)
}

func windowClosed(c *choice, n *record.Node) *block.Block {
	if c.Window.Open || ignores(c, n, v1alpha1.UrgentIgnoresWindows) {
		return nil
	}
	opens, due := opening(c, c.Window.OpensAt), record.IgnoredFrom(c.Policy, n, v1alpha1.UrgentIgnoresWindows)
	until := timing.Earliest(c.Window.OpensAt, due)
	if !due.IsZero() && until.Equal(due) {
		opens = atDeadline(c, due)
	}
	return block.New(v1alpha1.ReasonWindowClosed, "no window is open%s%s", opens, notUrgent(c, n, "windows")).EndsAt(until)
}

// notUrgent explains why an urgent request does not ignore windows or blackouts. It returns "" for
// nodes without an urgent request.
func notUrgent(c *choice, n *record.Node, hours string) string {
	if !n.Urgent {
		return ""
	}
	return fmt.Sprintf("; the request is urgent, but spec.urgent.requested of policy %s does not ignore %s", c.name, hours)
}

func atDeadline(c *choice, due time.Time) string {
	return "; this node may start " + c.instant(due) + ", at its deadline"
}

func opening(c *choice, at time.Time) string {
	if at.IsZero() {
		return "; none opens within a year"
	}
	return "; the next reboot may start " + c.instant(at)
}

// AssumedReboot is the assumed duration of drain and reboot together until the policy has seen one.
const AssumedReboot = 5 * time.Minute

// Reserve returns how much of a window must be left to begin a reboot: the usual duration of one,
// but at most the sum of its time-outs and half of the longest window. Without these bounds slow
// reboots, or one node with a wrong clock, could stop all further reboots, and the history would
// never change again.
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

// rebootTakes returns the duration of drain and reboot together that nine of ten reboots in the
// history did not exceed. It counts at least the lead time for a drain, because the policy may have
// raised it since.
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

// windowTooShort blocks a reboot that would end after the window. A node that holds a grant keeps
// it: the window was long enough when it was granted, and hooks may have taken time since.
func windowTooShort(c *choice, n *record.Node) *block.Block {
	closes := c.Window.ClosesAt
	if closes.IsZero() || c.held(n) || ignores(c, n, v1alpha1.UrgentIgnoresWindows) || !c.Now.Add(c.reserve).After(closes) {
		return nil
	}
	return block.New(v1alpha1.ReasonWindowTooShort, "the window closes %s, too soon for another reboot; "+
		"status.history shows how long a drain and a reboot take", c.instant(closes))
}

// ignores reports whether the node ignores windows or blackouts now.
func ignores(c *choice, n *record.Node, hours v1alpha1.UrgentIgnore) bool {
	return record.Reached(record.IgnoredFrom(c.Policy, n, hours), c.Now)
}
