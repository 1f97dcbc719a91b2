package record

import (
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Reports reports whether the agent has reported that the node needs a reboot or does not.
func (n *Node) Reports() bool {
	return n.Required == corev1.ConditionTrue || n.Required == corev1.ConditionFalse
}

// Paused reports whether an administrator has paused the node.
func (n *Node) Paused(now time.Time) bool { return v1alpha1.NodeIsPaused(n.Annotations, now) }

// NeedsReboot reports whether the agent says that the node needs a reboot. Unknown does not count.
func (n *Node) NeedsReboot() bool { return n.Required == corev1.ConditionTrue }

// rebootedAt returns when the node was back from its last granted reboot, or zero if it had none. A
// newer grant hides the end of the last one, but the time of the agent's first report stays.
func (n *Node) rebootedAt() time.Time {
	if g := n.Grant; g != nil && g.State == protocol.GrantFinished {
		return g.At.Time
	}
	return n.reportedBack
}

// Served reports whether the node has been rebooted since it began to need a reboot. Some needs
// survive a reboot: a sentinel file that stays, for example.
func (n *Node) Served() bool {
	at := n.rebootedAt()
	return !at.IsZero() && !at.Before(n.RequiredSince)
}

// WaitsSince returns the time since which the node has waited for a reboot: since it needs one, or
// since its last reboot did not end the need.
func (n *Node) WaitsSince() time.Time {
	if n.Served() {
		return n.rebootedAt()
	}
	return n.RequiredSince
}

// NeedSince returns WaitsSince for the ledger, or zero if it is unknown or comes from a clock that
// was never set.
func (n *Node) NeedSince() metav1.Time {
	since := n.WaitsSince()
	if since.UTC().Year() < v1alpha1.FirstYear {
		return metav1.Time{}
	}
	return metav1.NewTime(since)
}

// Unavailable reports whether the node is down, cordoned or being deleted, and so counts against
// maxUnavailable even without a reboot.
func (n *Node) Unavailable() bool { return !n.Ready || n.Cordoned || n.Deleting }

// AtRest reports whether a node without a grant needs no action or write, now or later: it is in
// service, needs no reboot, and shows no trace of one except what its policy says about needs. Most
// nodes are at rest most of the time.
func (n *Node) AtRest(needs Needs) bool {
	if n.NeedsReboot() || n.Unavailable() || n.ShowsAnswer() {
		return false
	}
	_, differs := n.Markers("", needs, false)
	return !differs
}

// ShowsAnswer reports whether the node still shows what the manager writes on nodes that need a
// reboot.
func (n *Node) ShowsAnswer() bool {
	return n.Permitted != nil || n.Failed != nil || n.Planned != nil || n.Preflight != ""
}

// HasFailed reports whether the last attempt in this boot failed.
func (n *Node) HasFailed() bool {
	p := n.Progress
	return p != nil && p.Phase == protocol.PhaseAborted && p.Failures > 0 && p.BootID == n.BootID
}

// FailedTry reports whether the last attempt in this boot failed and was a try of a closed budget.
func (n *Node) FailedTry() bool { return n.HasFailed() && n.Progress.FailedTry() }

// Failing reports whether the record shows an attempt that was given up or cancelled. Such a node
// backs off, and may count as a failure of the policy.
func (n *Node) Failing() bool {
	return n.Progress != nil && n.Progress.Phase == protocol.PhaseAborted || n.Grant != nil && n.Grant.State == protocol.GrantCancelled
}

// ShowsSince returns since when the manager's condition has had the reason. It returns now if the
// condition has another reason, or its time cannot be right.
func (n *Node) ShowsSince(reason v1alpha1.Reason, now time.Time) time.Time {
	if p := n.Permitted; p != nil && p.Reason == string(reason) && !p.LastHeartbeatTime.IsZero() && HasCome(p.LastHeartbeatTime.Time, now) {
		return p.LastHeartbeatTime.Time
	}
	return now
}

// ReportedLost reports whether the node's condition says that it is lost: it did not come back from
// its reboot in time, or went down during its drain and did not finish it in time.
func (n *Node) ReportedLost() bool {
	p := n.Permitted
	if p == nil || p.Status != corev1.ConditionTrue || n.Ready && !n.In(n.GrantSeq(), protocol.PhaseRebooting) {
		return false
	}
	switch v1alpha1.Reason(p.Reason) {
	case v1alpha1.ReasonRebootTimedOut, v1alpha1.ReasonAgentSilent, v1alpha1.ReasonStartupTaint, v1alpha1.ReasonDrainTimedOut,
		v1alpha1.ReasonHookFailed, v1alpha1.ReasonHookTimedOut:
		return true
	}
	return false
}

// HookRefused reports whether a before-hook ended the last grant.
func (n *Node) HookRefused() bool {
	g := n.Grant
	return g != nil && g.State == protocol.GrantCancelled && g.BootID == n.BootID &&
		(g.Reason == v1alpha1.ReasonHookFailed || g.Reason == v1alpha1.ReasonHookTimedOut)
}

// Silent reports whether the last grant was cancelled because the agent did not act on it.
func (n *Node) Silent() bool {
	g := n.Grant
	return g != nil && g.State == protocol.GrantCancelled && g.Reason == v1alpha1.ReasonAgentSilent
}

// crashed reports whether the host was rebooted without the last grant, and that did not end the
// need.
func (n *Node) crashed() bool {
	g := n.Grant
	return g != nil && g.State != protocol.GrantFinished && g.BootID != n.BootID && n.RequiredSince.Before(g.At.Time)
}

// DownSince returns the time since which the node has been unavailable without a reboot, or zero if
// unknown. For a cordoned node it is the time that the node controller noted in its taint.
func (n *Node) DownSince() time.Time {
	switch {
	case n.Deleting:
		return time.Time{}
	case !n.Ready:
		return n.ReadySince
	}
	for _, t := range n.Taints {
		if t.Key == corev1.TaintNodeUnschedulable && t.TimeAdded != nil {
			return t.TimeAdded.Time
		}
	}
	return time.Time{}
}

// UnexpectedReboot returns the reboot that began the node's boot if nobody granted it and its time
// can be right, or nil.
func (n *Node) UnexpectedReboot(now time.Time) *protocol.UnexpectedReboot {
	if u := n.unexpected; u == nil || !HasCome(u.At.Time, now) || u.At.UTC().Year() < v1alpha1.FirstYear {
		return nil
	}
	judged := *n.unexpected
	judged.FromVersion, judged.ToVersion = validVersion(judged.FromVersion), validVersion(judged.ToVersion)
	return &judged
}

// maxVersion is the length of the longest version, which is the value of a label.
const maxVersion = 63

// validVersion returns a version that may be the value of a label, or the empty string.
func validVersion(version string) string {
	odd := func(r rune) bool {
		return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r)
	}
	if len(version) > maxVersion || strings.ContainsFunc(version, odd) {
		return ""
	}
	return version
}

// FinishedAt returns when the node was back from a reboot that the policy granted, or zero if the
// last grant is another one or its time cannot be right.
func (n *Node) FinishedAt(policy string, now time.Time) time.Time {
	if g := n.Grant; g != nil && g.State == protocol.GrantFinished && g.Policy == policy && HasCome(g.At.Time, now) {
		return g.At.Time
	}
	return time.Time{}
}
