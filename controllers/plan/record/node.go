// Package record reads and judges a single Node: its record, its clock and its numbers.
//
// It is the one door for what others write. What cannot be right is refused or limited here,
// against what no node can write: the ledgers and the manager's own clock. Code that uses a Node,
// its Times or its Attempts does not check again.
package record

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// ControlPlaneLabels are the labels of control-plane nodes, with any value: the standard one since
// Kubernetes 1.20, its predecessor, the one of etcd members on k3s and RKE2, and the one of RKE1.
// Nodes may have only one of them. Managed clusters have no such nodes.
var ControlPlaneLabels = []string{
	"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master",
	"node-role.kubernetes.io/etcd", "node-role.kubernetes.io/controlplane",
}

// MaxMessage limits, in bytes, a message from a record.
const MaxMessage = 512

// Node holds what decisions read of a Node.
type Node struct {
	Name   string
	Labels map[string]string
	// ResourceVersion guards writes that must not miss a concurrent one. Taints are all taints of
	// the node.
	ResourceVersion string
	Taints          []corev1.Taint
	// OS, OSGroup and OSVersion describe the node's system, from the agent's labels, and Kernel is
	// from its kubelet. Each may be empty.
	OS, OSGroup, OSVersion, Kernel string
	// ControlPlane is true on nodes with one of ControlPlaneLabels.
	ControlPlane bool
	// Windows is true on nodes whose labels say that they run Windows. The agent cannot run there,
	// so no policy selects them.
	Windows bool

	// Ready is true if condition Ready is True, and ReadySince is its last transition. Unknown
	// counts as not Ready.
	Ready      bool
	ReadySince time.Time
	// Deleting is true if the Node is being deleted, or an autoscaler is about to delete it.
	// Deleter names that autoscaler, and is empty otherwise.
	Deleting bool
	Deleter  string
	Cordoned bool
	// BootID is the boot ID that the kubelet reports. OtherBoot is the boot ID of the agent's last
	// report if it differs, and empty otherwise. An agent does not begin before its first report in
	// the boot, or under a grant for another boot than it sees.
	BootID, OtherBoot string
	// Pending is the effect of the node's pending taint, or empty if it has no such taint. If there
	// are two, it is NoSchedule.
	Pending corev1.TaintEffect

	// Required is the status of the agent's condition RebootRequired, or empty if no agent reports.
	Required       corev1.ConditionStatus
	RequiredReason v1alpha1.Reason
	RequiredSince  time.Time
	// Maintenance is true while the agent's condition MaintenanceInProgress is True: from the point
	// of no return to the agent's first report after the boot. MaintenanceSince is its last
	// transition, so after the boot it is the time of that report.
	Maintenance      bool
	MaintenanceSince time.Time

	// PeopleSince is the time since which the drained node waits for people who are logged in on its
	// host, or zero if it does not.
	PeopleSince time.Time

	// Planned is the manager's condition MaintenancePlanned, or nil. PlannedByOthers is true if
	// another program has set that condition to True.
	Planned         *corev1.NodeCondition
	PlannedByOthers bool
	// Permitted is the manager's condition RebootPermitted, or nil.
	Permitted *corev1.NodeCondition
	// Failed is the manager's condition RebootFailed, or nil.
	Failed *corev1.NodeCondition

	// Urgent is true if the request for a reboot is urgent, and UrgentReason says why.
	Urgent       bool
	UrgentReason string
	BlockedBy    []protocol.Blocker
	protocol.Record

	// Annotations hold the answers of hooks, the reason of a pause, the time of the boot, and what the
	// policy tells the agent about needs.
	Annotations map[string]string

	// Preflight is the manager's request about pods, or empty. PreflightReport is the agent's
	// answer to a request, or nil if missing or unreadable.
	Preflight       string
	PreflightReport *protocol.PreflightReport
	// unexpected is the reboot that began the node's boot if nobody granted it, or nil.
	unexpected *protocol.UnexpectedReboot
	// Unreadable says which annotation of the record cannot be parsed, and why. It is empty if all
	// can.
	Unreadable string
	// reportedBack is the time of the agent's first report after the last granted reboot. It is
	// zero if the agent has not reported, or if another maintenance has begun since.
	reportedBack time.Time
	// Incredible is true if the record has a number that no policy has given, or a time in the
	// future.
	Incredible bool
}

// Of reads a Node. It cannot fail: an unreadable record permits nothing.
func Of(node *corev1.Node) Node {
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
		Annotations:  node.Annotations,
	}
	n.UrgentReason, n.Urgent = v1alpha1.UrgentlyRequested(node)
	n.Kernel, n.Deleting = kernelOf(node.Status.NodeInfo.KernelVersion), node.DeletionTimestamp != nil || n.Deleter != ""
	n.readConditions(node.Status.Conditions)
	n.readRecord(node.Annotations)
	return n
}

func (n *Node) readConditions(conditions []corev1.NodeCondition) {
	for i := range conditions {
		c := &conditions[i]
		if *c != v1alpha1.NodeCondition(conditions, c.Type) {
			continue // another condition of the same type is worse
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
		case corev1.NodeDrained:
			if v1alpha1.IsAgents(*c) && c.Reason == string(v1alpha1.ReasonPeopleLoggedIn) {
				n.PeopleSince = transition(c)
			}
		case corev1.NodeMaintenancePlanned:
			n.readPlanned(c)
		}
	}
}

func (n *Node) readPlanned(c *corev1.NodeCondition) {
	if v1alpha1.IsPlanned(*c) {
		n.Planned = c
	}
	n.PlannedByOthers = n.Planned == nil && c.Status == corev1.ConditionTrue
}

// transition returns the condition's last transition, or zero for years after 9999: RFC 3339 cannot
// write them, so no status accepts them.
func transition(c *corev1.NodeCondition) time.Time {
	if t := c.LastTransitionTime.Time; t.UTC().Year() <= v1alpha1.LastYear {
		return t
	}
	return time.Time{}
}

// validReason returns the reason, or "" if a grant cannot hold it. A grant with an invalid reason
// would be unreadable, and published again and again.
func validReason(reason string) v1alpha1.Reason {
	if r := v1alpha1.Reason(reason); r.IsValid() {
		return r
	}
	return ""
}

func (n *Node) readRecord(annotations map[string]string) {
	if err := cmp.Or(n.ProgressErr, n.GrantErr); err != nil {
		n.Unreadable = message.Shorten(MaxMessage, err.Error())
	}
	if n.Grant != nil {
		n.Grant.Message = message.Shorten(MaxMessage, n.Grant.Message)
	}
	if n.Progress != nil {
		n.Progress.Message = message.Shorten(MaxMessage, n.Progress.Message)
	}
	if engines, err := protocol.ParseEngines(annotations); err == nil && engines != nil {
		if n.unexpected = engines.Unexpected; engines.BootID != n.BootID {
			n.OtherBoot, n.unexpected = engines.BootID, nil
		}
	}
	n.Preflight = annotations[v1alpha1.AnnotationPreflight]
	report, err := protocol.ParseAgentReport(annotations)
	n.PreflightReport, n.BlockedBy = report.Preflight, report.BlockedBy
	if n.PreflightReport != nil {
		n.PreflightReport.Problem = message.Shorten(MaxMessage, n.PreflightReport.Problem)
	}
	if err != nil {
		// An unreadable report blocks.
		n.BlockedBy = []protocol.Blocker{{Reason: v1alpha1.ReasonRecordUnreadable, Message: err.Error()}}
	}
	for i := range n.BlockedBy {
		n.BlockedBy[i].Message = message.Shorten(MaxMessage, n.BlockedBy[i].Message)
	}
}

// kernelOf returns the kernel that a kubelet reports, or "" if a status would not accept it.
func kernelOf(reported string) string {
	if len(reported) > v1alpha1.MaxKernelBytes || strings.ContainsFunc(reported, func(r rune) bool { return r <= ' ' || r > unicode.MaxASCII }) {
		return ""
	}
	return reported
}

// bootID returns the boot ID, or "" if it is too long for a ledger entry: the API server would
// refuse the whole status. On Linux it has 36 bytes.
func bootID(reported string) string {
	if len(reported) > v1alpha1.MaxBootIDBytes {
		return ""
	}
	return reported
}

func isControlPlane(labels map[string]string) bool {
	return slices.ContainsFunc(ControlPlaneLabels, func(key string) bool { _, ok := labels[key]; return ok })
}
