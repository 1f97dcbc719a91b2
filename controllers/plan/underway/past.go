package underway

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Past returns the history entry of a reboot that is over, or nil if the grant was cancelled before
// it disturbed the node. Its end lies between the grant and now, whatever the node's clock says.
func (t Reboot) Past(now time.Time) *v1alpha1.PastReboot {
	n, seq := t.Node, t.Entry.Seq
	past := &v1alpha1.PastReboot{Node: t.Entry.Node, Seq: seq, GrantedAt: t.Entry.At, FromVersion: t.Entry.OSVersion, Ring: t.Entry.Ring}
	switch {
	case n == nil:
		past.Result, past.Reason, past.Message, past.EndedAt = v1alpha1.RebootLost, t.Reason, t.Message, metav1.NewTime(now)
		return past
	case protocol.Withdrawn(n.Record, t.Entry):
		past.Result, past.Reason, past.Message, past.EndedAt = v1alpha1.RebootWithdrawn, t.Reason, message.Shorten(record.MaxMessage, t.Message), metav1.NewTime(now)
		return past
	case n.Progress == nil || n.Progress.Seq != seq:
		return nil
	}
	p, most := n.Progress, now.Sub(t.Entry.At.Time)
	past.PodsForced = p.PodsForced
	if p.DrainStartedAt != nil {
		past.Drain = record.Lasted(p.DrainStartedAt.Time, p.At.Time, most)
	}
	ends := func(at metav1.Time) metav1.Time {
		return metav1.NewTime(timing.Earliest(timing.Latest(at.Time, t.Entry.At.Time), now))
	}
	switch {
	case p.Phase == protocol.PhaseAborted:
		past.Result, past.Reason, past.Message, past.EndedAt = v1alpha1.RebootAborted, p.Reason, message.Shorten(record.MaxMessage, p.Message), ends(p.At)
		return past
	case !n.Finished(seq):
		return nil
	}
	past.Result, past.Reason, past.EndedAt = v1alpha1.RebootSucceeded, n.Grant.Need, ends(n.Grant.At)
	past.ToVersion = n.OSVersion
	if before := t.Entry.KernelVersion; before != "" && n.Kernel != "" && before != n.Kernel {
		past.FromKernel, past.ToKernel = before, n.Kernel
	}
	past.Message = applied(n, past)
	past.Reboot = record.Lasted(p.At.Time, n.MaintenanceSince, most)
	past.Settle = record.Lasted(n.MaintenanceSince, n.Grant.At.Time, most)
	return past
}

// Ended returns the results of the reboots whose entries leave the ledger, without those already in
// the history. The history may already have one if the ledger is another policy's, because the
// history is written first.
func Ended(reboots []Reboot, before []v1alpha1.PastReboot, now time.Time) []v1alpha1.PastReboot {
	var ended []v1alpha1.PastReboot
	for _, t := range reboots {
		if t.Action != ReleaseEntry {
			continue
		}
		past := t.Past(now)
		if past == nil || slices.ContainsFunc(before, func(b v1alpha1.PastReboot) bool {
			return b.Node == past.Node && b.Seq == past.Seq && b.GrantedAt.Time.Equal(past.GrantedAt.Time)
		}) {
			continue
		}
		ended = append(ended, *past)
	}
	return ended
}

// applied names the update that a reboot has applied, as its engine does. It is empty if the version
// or the kernel shows it, or if it is unknown whether it was applied.
func applied(n *record.Node, past *v1alpha1.PastReboot) string {
	u := n.Progress.Update
	if past.FromVersion != past.ToVersion || past.ToKernel != "" || u == nil || u.Version == "" || u.Version == u.Running || n.NeedsReboot() {
		return ""
	}
	return message.Shorten(record.MaxMessage, cmp.Or(u.Running, "?")+" → "+u.Version)
}

// NeedAge returns how long the need lasted that a reboot has ended. ok is true if the reboot ended
// one and its start is known.
func (t Reboot) NeedAge(now time.Time) (age time.Duration, ok bool) {
	past := t.Past(now)
	if past == nil || past.Result != v1alpha1.RebootSucceeded || t.Entry.NeedSince.IsZero() || t.Node.NeedsReboot() {
		return 0, false
	}
	return max(0, past.EndedAt.Sub(t.Entry.NeedSince.Time)), true
}
