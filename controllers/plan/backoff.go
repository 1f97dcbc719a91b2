package plan

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

const (
	firstBackOff = 5 * time.Minute
	lastBackOff  = 6 * time.Hour
	// silentBackOff keeps a node whose agent is dead from taking a slot again and again.
	silentBackOff = 15 * time.Minute
)

// backingOff holds a node back after an attempt that failed: 5 minutes, doubling to 6 hours, until a reboot succeeds.
func backingOff(f *fleet, n *Node) *Objection {
	until, why := f.backOff(n)
	if !f.Now.Before(until) {
		return nil
	}
	o := objection(v1alpha1.ReasonBackingOff, "%s; the next attempt is due %s", why, instant(until))
	o.Until = until
	return o
}

func (f *fleet) backOff(n *Node) (until time.Time, why string) {
	if g := n.Grant; g != nil && g.State == v1alpha1.GrantCancelled && g.Reason == v1alpha1.ReasonAgentSilent {
		return g.At.Add(silentBackOff), "the agent did not act on the last grant"
	}
	if n.hookRefused() {
		return n.Grant.At.Add(hookBackOff), lastFailed(n.Grant.Reason, n.Grant.Message)
	}
	if p := n.Progress; n.failed() {
		_, ended := f.ended(n)
		return ended.Add(timing.Backoff(int(p.Failures), firstBackOff, lastBackOff)), lastFailed(p.Reason, p.Message)
	}
	return time.Time{}, ""
}

func lastFailed(reason v1alpha1.Reason, message string) string {
	failed := "the last attempt failed (" + string(reason) + ")"
	if message == "" {
		return failed
	}
	return failed + ": " + message
}

// failed tells whether the last attempt in this boot failed.
func (n *Node) failed() bool {
	p := n.Progress
	return p != nil && p.Phase == v1alpha1.PhaseAborted && p.Failures > 0 && p.BootID == n.BootID
}
