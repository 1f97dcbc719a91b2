package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/block"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// backingOff blocks a node after a failed attempt: for 5 minutes, doubling to 6 hours until a
// reboot succeeds. After a successful reboot it blocks for the interval, unless an administrator
// requests the next one.
func backingOff(c *choice, n *record.Node) *block.Block {
	if until := c.attempts.Rested(n); c.Now.Before(until) && !record.Urgent(c.Policy, n) {
		return block.New(v1alpha1.ReasonBackingOff, "the node has been back from its last reboot since %s; the next may begin %s later, at %s; to begin sooner: kubectl reboot request %s --reason=why",
			c.instant(n.Grant.At.Time), c.attempts.Interval, c.instant(until), n.Name).EndsAt(until)
	}
	until, why := c.attempts.BackOff(n)
	if !c.Now.Before(until) {
		return nil
	}
	return block.New(v1alpha1.ReasonBackingOff, "%s; the next attempt is due %s%s", why, c.instant(until), c.attempts.RetryHint(n)).EndsAt(until)
}

// Failure is a failed attempt to reboot a node that still needs its reboot.
type Failure struct {
	Node   string
	Reason v1alpha1.Reason
	// Message says what failed.
	Message string
	// RetryAt is the time when the node may be tried again.
	RetryAt time.Time
}

// failuresOf returns the nodes whose last attempt failed, by name. Reboots in progress are left
// out, because they have their own deadline.
func failuresOf(c *choice) []Failure {
	var failures []Failure
	for _, n := range c.active {
		if !n.NeedsReboot() || c.Held(n) {
			continue
		}
		f := Failure{Node: n.Name}
		switch {
		case n.HasFailed():
			f.Reason, f.Message = n.Progress.Reason, n.Progress.Message
		case n.HookRefused():
			f.Reason, f.Message = n.Grant.Reason, n.Grant.Message
		case n.Silent():
			f.Reason, f.Message = n.Grant.Reason, "the agent did not act on the last grant"
		default:
			continue
		}
		f.RetryAt = c.attempts.RetryAt(n)
		failures = append(failures, f)
	}
	slices.SortFunc(failures, func(a, b Failure) int { return cmp.Compare(a.Node, b.Node) })
	return failures
}
