package plan

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// ControlPlaneLabels are those of control-plane nodes, with any value. They are the common one since Kubernetes 1.20, the one before
// it, that of RKE1, and that of etcd members on k3s and RKE2. Those may have no other. Managed clusters have no such nodes.
var ControlPlaneLabels = []string{
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master",
	"node-role.kubernetes.io/etcd", "node-role.kubernetes.io/controlplane",
}

// Node is what a decision looks at on a Node.
type Node struct {
	Name   string
	Labels map[string]string
	// ResourceVersion is what a write that must not miss another one carries. Taints are the node's, of anybody.
	ResourceVersion string
	Taints          []corev1.Taint
	// OS, OSGroup and OSVersion are what the node runs, as its agent labels it; each may be empty.
	OS, OSGroup, OSVersion string
	// ControlPlane is true on nodes with one of ControlPlaneLabels.
	ControlPlane bool
	// Windows is true on nodes that run it, by their labels. No agent can run there, so no policy selects them.
	Windows bool

	// Ready is condition Ready=True, and ReadySince its last transition. Unknown counts as not Ready.
	Ready      bool
	ReadySince time.Time
	// Deleting is true on a Node that is being deleted, or that an autoscaler is about to delete: Deleter, empty otherwise.
	Deleting bool
	Deleter  string
	Cordoned bool
	// BootID is what the kubelet reports, and OtherBoot what the agent's last report is of, where that is another boot. No agent begins
	// under a grant before its first report in the boot, nor under one that names another boot than it sees. Empty: it is not, or unknown.
	BootID, OtherBoot string
	// Pending is the effect of the pending taint: NoSchedule where there are two. Empty: the node carries none.
	Pending corev1.TaintEffect

	// Required is the agent's condition RebootRequired; empty when no agent reports.
	Required       corev1.ConditionStatus
	RequiredReason v1alpha1.Reason
	RequiredSince  time.Time
	// Maintenance is the agent's condition MaintenanceInProgress=True: the agent set it with the point of no return, and has not
	// reported since the boot. MaintenanceSince is its last transition, so after the boot the agent's first report.
	Maintenance      bool
	MaintenanceSince time.Time

	// Planned is condition MaintenancePlanned of the manager's as it is; nil when there is none. PlannedByOthers: another program
	// has set it to True.
	Planned         *corev1.NodeCondition
	PlannedByOthers bool
	// Permitted is the manager's own condition as it is; nil when there is none.
	Permitted *corev1.NodeCondition
	// Failed is the manager's condition RebootFailed as it is; nil when there is none.
	Failed *corev1.NodeCondition

	Paused bool
	// Urgent: the request for a reboot is urgent, and UrgentReason is why.
	Urgent       bool
	UrgentReason string
	BlockedBy    []protocol.Blocker
	protocol.Record

	// Annotations hold the answers of hooks, the reason of a pause, when the host booted and how long it may be up.
	Annotations map[string]string
	// MaxUptime is annotation max-uptime as it is; empty when there is none.
	MaxUptime string

	// Preflight is the manager's request about pods as it is; empty when there is none. PreflightReport is the agent's answer to
	// one; nil when there is none that can be read.
	Preflight       string
	PreflightReport *protocol.PreflightReport

	// Unreadable states what is wrong with an annotation of the record that cannot be parsed; empty when all is well.
	Unreadable string
	// reportedBack is when the agent reported first after the last granted reboot. Zero: it did not, or another maintenance has begun since.
	reportedBack time.Time
	// incredible: the record has a number that no policy has given, or a time of the future.
	incredible bool
}

// NodeOf reads what a decision looks at. Nothing in it can fail: an unreadable record is no permission.
func NodeOf(node *corev1.Node) Node {
	n := Node{
		Name:   node.Name,
		Record: protocol.RecordOf(node),
		Labels: node.Labels,

		ResourceVersion: node.ResourceVersion,
		Taints:          node.Spec.Taints,

		OS:           node.Labels[v1alpha1.LabelOSID],
		OSGroup:      node.Labels[v1alpha1.LabelOSGroup],
		OSVersion:    node.Labels[v1alpha1.LabelOSVersion],
		ControlPlane: isControlPlane(node.Labels),
		Windows:      node.Labels[corev1.LabelOSStable] == string(corev1.Windows),
		Deleter:      deleter(node.Spec.Taints),
		Pending:      pending(node.Spec.Taints),
		Cordoned:     node.Spec.Unschedulable,
		BootID:       bootID(node.Status.NodeInfo.BootID),
		Paused:       v1alpha1.NodeIsPaused(node.Annotations),
		Annotations:  node.Annotations,
		MaxUptime:    node.Annotations[v1alpha1.AnnotationMaxUptime],
	}
	n.UrgentReason, n.Urgent = v1alpha1.UrgentlyRequested(node)
	n.Deleting = node.DeletionTimestamp != nil || n.Deleter != ""
	n.readConditions(node.Status.Conditions)
	n.readRecord(node.Annotations)
	return n
}

func (n *Node) readConditions(conditions []corev1.NodeCondition) {
	for i := range conditions {
		c := &conditions[i]
		if *c != v1alpha1.NodeCondition(conditions, c.Type) {
			continue // There is a worse one of the same type.
		}
		switch c.Type {
		case corev1.NodeReady:
			n.Ready, n.ReadySince = c.Status == corev1.ConditionTrue, transition(c)
		case v1alpha1.NodeRebootRequired:
			n.Required, n.RequiredReason, n.RequiredSince = c.Status, validReason(c.Reason), transition(c)
		case v1alpha1.NodeRebootPermitted:
			n.Permitted = c
		case v1alpha1.NodeRebootFailed:
			n.Failed = c
		case corev1.NodeMaintenanceInProgress:
			n.Maintenance, n.MaintenanceSince = v1alpha1.IsAgents(*c), transition(c)
			if c.Status != corev1.ConditionTrue && c.Reason == v1alpha1.EventRebootSucceeded {
				n.reportedBack = n.MaintenanceSince
			}
		case corev1.NodeMaintenancePlanned:
			if v1alpha1.IsPlanned(*c) {
				n.Planned = c
			}
			n.PlannedByOthers = n.Planned == nil && c.Status == corev1.ConditionTrue
		}
	}
}

// transition is zero where the time is beyond what RFC 3339 can write: no status takes one of the year 10000.
func transition(c *corev1.NodeCondition) time.Time {
	if t := c.LastTransitionTime.Time; t.UTC().Year() <= v1alpha1.LastYear {
		return t
	}
	return time.Time{}
}

// validReason is empty where a grant could not name it: a grant with such a need would be unreadable, and published again and again.
func validReason(reason string) v1alpha1.Reason {
	if r := v1alpha1.Reason(reason); r.IsValid() {
		return r
	}
	return ""
}

func (n *Node) readRecord(annotations map[string]string) {
	if err := cmp.Or(n.ProgressErr, n.GrantErr); err != nil {
		n.Unreadable = message.Shorten(maxMessage, err.Error())
	}
	if n.Progress != nil {
		n.Progress.Message = message.Shorten(maxMessage, n.Progress.Message)
	}
	if engines, err := protocol.ParseEngines(annotations); err == nil && engines != nil && engines.BootID != n.BootID {
		n.OtherBoot = engines.BootID
	}
	n.Preflight = annotations[v1alpha1.AnnotationPreflight]
	report, err := protocol.ParseAgentReport(annotations)
	n.PreflightReport, n.BlockedBy = report.Preflight, report.BlockedBy
	if err != nil {
		// An unreadable report blocks.
		n.BlockedBy = []protocol.Blocker{{Reason: v1alpha1.ReasonRecordUnreadable, Message: err.Error()}}
	}
	for i := range n.BlockedBy {
		n.BlockedBy[i].Message = message.Shorten(maxMessage, n.BlockedBy[i].Message)
	}
}

// bootID is empty where it is longer than a ledger takes: the API server would refuse the whole status for that entry. Linux has 36 bytes.
func bootID(reported string) string {
	if len(reported) > v1alpha1.MaxBootIDBytes {
		return ""
	}
	return reported
}

// Reports reports whether the agent has reported if the node needs a reboot.
func (n *Node) Reports() bool {
	return n.Required == corev1.ConditionTrue || n.Required == corev1.ConditionFalse
}

// NeedsReboot reports whether the agent reports it. Unknown is never a need.
func (n *Node) NeedsReboot() bool { return n.Required == corev1.ConditionTrue }

// rebootedAt is when the node was back from its last granted reboot. A newer grant hides its end; the agent's first report after it does not go.
// Zero: it had none.
func (n *Node) rebootedAt() time.Time {
	if g := n.Grant; g != nil && g.State == protocol.GrantFinished {
		return g.At.Time
	}
	return n.reportedBack
}

// served reports whether the node was rebooted since it needs a reboot: the need has survived that, as where a sentinel does.
func (n *Node) served() bool {
	at := n.rebootedAt()
	return !at.IsZero() && !at.Before(n.RequiredSince)
}

// WaitsSince is since when the node has waited for a reboot: since it needs one, or since its last reboot did not end that.
func (n *Node) WaitsSince() time.Time {
	if n.served() {
		return n.rebootedAt()
	}
	return n.RequiredSince
}

// needSince is WaitsSince for the ledger. Zero: it is unknown, or of a clock that was never set.
func (n *Node) needSince() metav1.Time {
	since := n.WaitsSince()
	if since.UTC().Year() < v1alpha1.FirstYear {
		return metav1.Time{}
	}
	return metav1.NewTime(since)
}

// Unavailable reports whether the node is down for reasons of its own, and uses maxUnavailable.
func (n *Node) Unavailable() bool { return !n.Ready || n.Cordoned || n.Deleting }

func isControlPlane(labels map[string]string) bool {
	return slices.ContainsFunc(ControlPlaneLabels, func(key string) bool { _, ok := labels[key]; return ok })
}

// atRest reports whether nothing is to be done or written about a node that is not held, now or later. It is in service, needs no
// reboot, and shows nothing of one, except how long it may be up. Most nodes are, most of the time.
func (n *Node) atRest(maxUptime string) bool {
	if n.NeedsReboot() || n.Unavailable() || n.showsAnswer() {
		return false
	}
	_, differs := n.markers("", maxUptime, false)
	return !differs
}

// showsAnswer reports whether the node shows something of the manager that is for nodes that need a reboot.
func (n *Node) showsAnswer() bool {
	return n.Permitted != nil || n.Failed != nil || n.Planned != nil || n.Preflight != ""
}

// failed reports whether the last attempt in this boot failed.
func (n *Node) failed() bool {
	p := n.Progress
	return p != nil && p.Phase == protocol.PhaseAborted && p.Failures > 0 && p.BootID == n.BootID
}

// failedTry reports whether the last attempt in this boot was a try of a closed budget that failed.
func (n *Node) failedTry() bool { return n.failed() && n.Progress.FailedTry() }

// Failing reports whether the record shows an attempt that was given up or cancelled. Such a node backs off, and may count as a
// failure of the policy.
func (n *Node) Failing() bool {
	return n.Progress != nil && n.Progress.Phase == protocol.PhaseAborted || n.Grant != nil && n.Grant.State == protocol.GrantCancelled
}

// reportedLost reports whether the node shows that it is lost. It did not come back in time from its reboot, or went down in its drain
// and did not end it in time.
func (n *Node) reportedLost() bool {
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

// hookRefused reports whether the last grant was given back because of a before-hook.
func (n *Node) hookRefused() bool {
	g := n.Grant
	return g != nil && g.State == protocol.GrantCancelled && g.BootID == n.BootID &&
		(g.Reason == v1alpha1.ReasonHookFailed || g.Reason == v1alpha1.ReasonHookTimedOut)
}

// silent reports whether the last grant was cancelled because the agent did not act on it.
func (n *Node) silent() bool {
	g := n.Grant
	return g != nil && g.State == protocol.GrantCancelled && g.Reason == v1alpha1.ReasonAgentSilent
}

// crashed reports whether the last grant ended because its host was rebooted without it, which did not end the need.
func (n *Node) crashed() bool {
	g := n.Grant
	return g != nil && g.State != protocol.GrantFinished && g.BootID != n.BootID && n.RequiredSince.Before(g.At.Time)
}

// downSince returns since when the node has been down for a reason of its own, or the zero time if that is unknown. The node controller
// taints a cordoned node, and notes when.
func (n *Node) downSince() time.Time {
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
