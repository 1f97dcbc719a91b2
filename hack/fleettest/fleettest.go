// Package fleettest builds policies and nodes for tests. Its functions are named after what happens
// to them.
package fleettest

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // time zones

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Now is a Monday afternoon in Berlin, before the windows of the week.
var Now = time.Date(2026, 11, 23, 15, 48, 0, 0, time.UTC)

// Berlin is the time zone of most windows and readers.
var Berlin = berlin()

func berlin() *time.Location {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	return zone
}

// PoolLabel is the label by which Policy selects nodes.
const PoolLabel = "example.com/pool"

// Policy returns a policy that selects the pool of its name and reboots one node at a time, at any
// hour. The manager has seen it.
func Policy(name string, options ...func(*v1alpha1.RebootPolicy)) v1alpha1.RebootPolicy {
	p := v1alpha1.RebootPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Spec:       v1alpha1.RebootPolicySpec{NodeSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{PoolLabel: name}}},
		Status:     v1alpha1.RebootPolicyStatus{ObservedGeneration: 1},
	}
	for _, o := range options {
		o(&p)
	}
	return p
}

// AtMost sets maxUnavailable.
func AtMost(value string) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Spec.Concurrency = &v1alpha1.Concurrency{MaxUnavailable: new(intstr.Parse(value))}
	}
}

// Weeknights adds a window from Monday to Thursday, 22:00 to 4:00 in Berlin.
func Weeknights(p *v1alpha1.RebootPolicy) {
	p.Spec.Windows = append(p.Spec.Windows, v1alpha1.Window{
		Name: "weeknights", Days: []v1alpha1.Day{"Mon", "Tue", "Wed", "Thu"}, Start: "22:00",
		Duration: v1alpha1.Duration{Duration: 6 * time.Hour}, TimeZone: "Europe/Berlin",
	})
}

// Spec edits the spec.
func Spec(edit func(*v1alpha1.RebootPolicySpec)) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) { edit(&p.Spec) }
}

// Halted makes the policy halted.
func Halted(message string) func(*v1alpha1.RebootPolicy) {
	return reports(v1alpha1.ConditionHalted, metav1.ConditionTrue, v1alpha1.ReasonTooManyFailures, message)
}

// WriteRefused makes the policy report that the API server refuses its writes about a granted
// reboot.
func WriteRefused(message string) func(*v1alpha1.RebootPolicy) {
	return reports(v1alpha1.ConditionProgressing, metav1.ConditionTrue, v1alpha1.ReasonNodeWriteRefused, message)
}

func reports(kind string, status metav1.ConditionStatus, reason v1alpha1.Reason, message string) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Status.Conditions = append(p.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: string(reason), Message: message})
	}
}

// Holds adds a ledger entry of a given age.
func Holds(node string, seq int64, ago time.Duration) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Status.Seq = max(p.Status.Seq, seq)
		p.Status.Grants = append(p.Status.Grants, v1alpha1.LedgerEntry{Node: node, Seq: seq, BootID: boot(node, 1), At: Ago(ago)})
	}
}

// Node returns a node of a pool on its first boot. It has been Ready for a day and needs no reboot.
func Node(name, pool string, options ...func(*corev1.Node)) corev1.Node {
	n := corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{PoolLabel: pool}, Annotations: map[string]string{}},
		Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: boot(name, 1)}},
	}
	Condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", 24*time.Hour)(&n)
	Condition(v1alpha1.NodeRebootRequired, corev1.ConditionFalse, "UpToDate", 24*time.Hour)(&n)
	for _, o := range options {
		o(&n)
	}
	return n
}

// Condition sets a condition of a given age.
func Condition(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string, ago time.Duration, message ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		c := corev1.NodeCondition{Type: kind, Status: status, Reason: reason, LastTransitionTime: Ago(ago)}
		if len(message) > 0 {
			c.Message = message[0]
		}
		for i := range n.Status.Conditions {
			if n.Status.Conditions[i].Type == kind {
				n.Status.Conditions[i] = c
				return
			}
		}
		n.Status.Conditions = append(n.Status.Conditions, c)
	}
}

// Needs makes the node need a reboot for a given time.
func Needs(ago time.Duration) func(*corev1.Node) {
	return Condition(v1alpha1.NodeRebootRequired, corev1.ConditionTrue, "UpdateStaged", ago, "Flatcar 4459.2.1 is staged; 4459.2.0 runs")
}

// NotReady makes the kubelet silent.
func NotReady(n *corev1.Node) {
	Condition(corev1.NodeReady, corev1.ConditionUnknown, "NodeStatusUnknown", time.Minute)(n)
}

// Annotated sets an annotation.
func Annotated(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

// Granted adds a grant of a policy, of a given age.
func Granted(policy string, seq int64, ago time.Duration) func(*corev1.Node) {
	return func(n *corev1.Node) {
		g := protocol.Grant{Policy: policy, Seq: seq, BootID: boot(n.Name, 1), State: protocol.GrantActive, At: Ago(ago), Need: v1alpha1.ReasonUpdateStaged}
		n.Annotations[v1alpha1.AnnotationGrant] = g.String()
	}
}

// Progressed sets the agent's progress with a grant, of a given age. The agent has cordoned the
// node.
func Progressed(seq int64, phase protocol.Phase, ago time.Duration, edit ...func(*protocol.Progress)) func(*corev1.Node) {
	return func(n *corev1.Node) {
		p := protocol.Progress{Seq: seq, Phase: phase, BootID: boot(n.Name, 1), Cordoned: phase != protocol.PhaseAborted, At: Ago(ago)}
		for _, e := range edit {
			e(&p)
		}
		n.Annotations[v1alpha1.AnnotationProgress] = p.String()
		n.Spec.Unschedulable = p.Cordoned
	}
}

// Booted makes the node Ready on its second boot, as its agent reported some time ago.
func Booted(ago time.Duration) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.NodeInfo.BootID = boot(n.Name, 2)
		Condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", ago)(n)
		Condition(corev1.NodeMaintenanceInProgress, corev1.ConditionFalse, "RebootSucceeded", ago)(n)
		Condition(v1alpha1.NodeRebootRequired, corev1.ConditionFalse, "UpToDate", ago)(n)
	}
}

func boot(node string, number int) string { return node + "-boot-" + string(rune('0'+number)) }

// Ago returns a time before Now.
func Ago(ago time.Duration) metav1.Time { return metav1.NewTime(Now.Add(-ago)) }

// AgentsMissing makes the manager see no working agent on the given nodes, and one on another node.
func AgentsMissing(nodes ...string) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		missing := int32(len(nodes))
		p.Status.Nodes.Agents = &v1alpha1.AgentsStatus{
			Summary: fmt.Sprintf("1/%d", missing+1), Ready: 1, Missing: missing, Nodes: nodes,
		}
		reports(v1alpha1.ConditionAgentsReady, metav1.ConditionFalse, v1alpha1.ReasonAgentsMissing, fmt.Sprintf(
			"%d of %d nodes have no working agent, so it is unknown whether they need a reboot: %s", missing, missing+1, strings.Join(nodes, ", ")))(p)
	}
}
