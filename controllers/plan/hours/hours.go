// Package hours knows when the nodes of a policy may go: windows, blackouts, and what passes them.
package hours

import (
	"fmt"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Hours are the windows and blackouts of a policy at one instant.
type Hours struct {
	Now    time.Time
	Policy *v1alpha1.RebootPolicy
	Window window.State
	// Zone is the time zone of messages.
	Zone *time.Location
	// Reserve is the time that must be left in a window to begin a reboot.
	Reserve time.Duration
}

// instant formats a time for messages.
func (h Hours) instant(t time.Time) string { return timing.InstantIn(t, h.Zone) }

// Blackout blocks a node while a blackout is in force that it does not ignore.
func (h Hours) Blackout(n *record.Node) *block.Block {
	w := h.Window
	if !w.Blackout || h.ignores(n, v1alpha1.UrgentIgnoresBlackouts) {
		return nil
	}
	o, until := block.New(v1alpha1.ReasonBlackout, "blackout %s is in force", w.Name), w.OpensAt
	due := record.IgnoredFrom(h.Policy, n, v1alpha1.UrgentIgnoresWindows)
	switch passes := record.IgnoredFrom(h.Policy, n, v1alpha1.UrgentIgnoresBlackouts); {
	case !passes.IsZero() && timing.Earliest(w.OpensAt, passes).Equal(passes) && (due.Equal(passes) || passes.Before(w.Next)):
		o.Message += h.atDeadline(passes)
		until = passes
	case due.IsZero() || w.Next.IsZero() || !w.OpensAt.IsZero() && w.OpensAt.Before(due):
		o.Message += h.opening(until)
	case !w.Next.Before(due): // when this blackout ends, the node is past its deadline and ignores windows
		o.Message += ", until " + h.instant(w.Next) + " or longer"
		until = w.Next
	default:
		o.Message += h.atDeadline(due) + ", or later" // another blackout may follow
		until = due
	}
	if w.BlackoutReason != "" {
		o.Message += ": " + w.BlackoutReason
	}
	o.Message += h.notUrgent(n, "blackouts")
	return o.EndsAt(until)
}

// Closed blocks a node while no window is open, unless it ignores that.
func (h Hours) Closed(n *record.Node) *block.Block {
	if h.Window.Open || h.ignores(n, v1alpha1.UrgentIgnoresWindows) {
		return nil
	}
	opens, due := h.opening(h.Window.OpensAt), record.IgnoredFrom(h.Policy, n, v1alpha1.UrgentIgnoresWindows)
	until := timing.Earliest(h.Window.OpensAt, due)
	if !due.IsZero() && until.Equal(due) {
		opens = h.atDeadline(due)
	}
	return block.New(v1alpha1.ReasonWindowClosed, "no window is open%s%s", opens, h.notUrgent(n, "windows")).EndsAt(until)
}

// notUrgent explains why an urgent request does not ignore windows or blackouts. It returns "" for
// nodes without an urgent request.
func (h Hours) notUrgent(n *record.Node, hours string) string {
	if !n.Urgent {
		return ""
	}
	return fmt.Sprintf("; the request is urgent, but spec.urgent.requested of policy %s does not ignore %s", h.Policy.Name, hours)
}

func (h Hours) atDeadline(due time.Time) string {
	return "; this node may start " + h.instant(due) + ", at its deadline"
}

func (h Hours) opening(at time.Time) string {
	if at.IsZero() {
		return "; none opens within a year"
	}
	return "; the next reboot may start " + h.instant(at)
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

// TooShort blocks a reboot that would end after the window.
func (h Hours) TooShort(n *record.Node) *block.Block {
	closes := h.Window.ClosesAt
	if closes.IsZero() || h.ignores(n, v1alpha1.UrgentIgnoresWindows) || !h.Now.Add(h.Reserve).After(closes) {
		return nil
	}
	return block.New(v1alpha1.ReasonWindowTooShort, "the window closes %s, too soon for another reboot; "+
		"status.history shows how long a drain and a reboot take", h.instant(closes))
}

// ignores reports whether the node ignores windows or blackouts now.
func (h Hours) ignores(n *record.Node, hours v1alpha1.UrgentIgnore) bool {
	return record.Reached(record.IgnoredFrom(h.Policy, n, hours), h.Now)
}

// Ignores explains why windows or blackouts do not count for a node, and until when.
func (h Hours) Ignores(n *record.Node, hours v1alpha1.UrgentIgnore) string {
	from := record.IgnoredFrom(h.Policy, n, hours)
	if from.Equal(record.AtOnce) {
		return "the urgent request ignores that until the node is rebooted"
	}
	return "spec.urgent.overdue ignores that since " + h.instant(from) + ", until the node is rebooted"
}
