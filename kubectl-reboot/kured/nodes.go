package kured

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/moment"
)

const (
	controlPlane = "node-role.kubernetes.io/control-plane"
	listTaints   = "kubectl get nodes -o custom-columns='NODE:.metadata.name,TAINTS:.spec.taints[*].key'"
)

// nodeSelector converts the DaemonSet's scheduling to a selector, because kured reboots the nodes
// on which its pods run.
func nodeSelector(c *conversion) error {
	pod := c.kured.daemonSet.Spec.Template.Spec
	selector := &v1alpha1.LabelSelector{}
	if len(pod.NodeSelector) > 0 {
		selector.MatchLabels = pod.NodeSelector
		c.report.carry("the pods' nodeSelector", "nodeSelector.matchLabels")
	}
	affinity(c, pod.Affinity, selector)
	taints(c, pod.Tolerations, selector)
	if len(selector.MatchLabels)+len(selector.MatchExpressions) > 0 {
		c.policy.Spec.NodeSelector = selector
	}
	if err := fits(*selector); err != nil {
		return fmt.Errorf("the selector of these pods' nodes is too large: %w. Label the nodes, select them by that label, and convert again", err)
	}
	return nil
}

func affinity(c *conversion, affinity *corev1.Affinity, selector *v1alpha1.LabelSelector) {
	if affinity == nil || affinity.NodeAffinity == nil || affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return
	}
	terms := affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	if len(terms) != 1 || len(terms[0].MatchFields) > 0 {
		c.report.leave("the pods' node affinity",
			"it has several terms, or fields, which no label selector can express: the policy selects more nodes than kured; narrow its nodeSelector, or label the nodes")
		return
	}
	for _, e := range terms[0].MatchExpressions {
		if e.Operator == corev1.NodeSelectorOpGt || e.Operator == corev1.NodeSelectorOpLt {
			c.report.leave(fmt.Sprintf("the pods' node affinity: %s %s %s", e.Key, e.Operator, strings.Join(e.Values, ", ")),
				"no label selector can compare numbers: the policy selects more nodes than kured; narrow its nodeSelector, or label the nodes")
			continue
		}
		selector.MatchExpressions = append(selector.MatchExpressions, v1alpha1.LabelSelectorRequirement{
			Key: e.Key, Operator: metav1.LabelSelectorOperator(e.Operator), Values: e.Values,
		})
	}
	if len(selector.MatchExpressions) > 0 {
		c.report.carry("the pods' node affinity", "nodeSelector.matchExpressions")
	}
}

// taints excludes nodes whose taints kured's pods do not tolerate, because a policy ignores taints.
func taints(c *conversion, tolerations []corev1.Toleration, selector *v1alpha1.LabelSelector) {
	if slices.ContainsFunc(tolerations, toleratesAll) {
		return
	}
	if !slices.ContainsFunc(tolerations, toleratesControlPlane) {
		selector.MatchExpressions = append(selector.MatchExpressions, v1alpha1.LabelSelectorRequirement{
			Key: controlPlane, Operator: metav1.LabelSelectorOpDoesNotExist,
		})
		c.report.carry("the pods do not tolerate the control plane's taint",
			"nodeSelector without control-plane nodes; drop that line if yours have no taint")
	}
	c.report.leave("the pods' tolerations",
		"kured keeps off nodes with other taints, but a policy ignores taints. If you have such nodes, narrow nodeSelector: "+listTaints)
}

func toleratesAll(t corev1.Toleration) bool {
	return t.Key == "" && t.Operator == corev1.TolerationOpExists && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule)
}

func toleratesControlPlane(t corev1.Toleration) bool {
	// The taint has no value, so a toleration without one matches it.
	return t.Key == controlPlane && (t.Operator == corev1.TolerationOpExists || t.Value == "") && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule)
}

const (
	mostNodes  = 1000           // of concurrency.maxUnavailable, as a number
	mostSettle = 24 * time.Hour // of reboot.settle
	// leastSpacing and mostSpacing are the limits of concurrency.spacing.
	leastSpacing = time.Minute
	mostSpacing  = 168 * time.Hour
)

// concurrency converts the number of nodes at once and the delay between them.
func concurrency(c *conversion) error {
	nodes, most := intstr.FromInt(min(max(c.flags.concurrency, 1), mostNodes)), ""
	if c.flags.concurrency > mostNodes {
		most = ", the most there is; a percentage has no such bound"
	}
	c.policy.Spec.Concurrency = &v1alpha1.Concurrency{MaxUnavailable: &nodes}
	c.carried("concurrency", fmt.Sprintf("concurrency.maxUnavailable: %s%s. Nodes that are down or cordoned for other reasons use it up too", nodes.String(), most))
	lockReleaseDelay(c)
	for _, name := range []string{"ds-name", "ds-namespace", "lock-annotation"} {
		c.unneeded(name, "no lock is used: the policy's status.grants lists the nodes that may reboot")
	}
	c.unneeded("lock-ttl", "no lock is left behind: a Node that is deleted frees its slot. One that does not come back keeps it and is reported, until you repair it or delete the Node")
	return holder(c)
}

// lockReleaseDelay converts the time for which a node keeps its lock after it is back in service.
// With one lock this is spacing. With several, a node only holds up one of them, as it does while
// it settles.
func lockReleaseDelay(c *conversion) {
	delay := c.flags.lockReleaseDelay
	switch {
	case delay <= 0:
		c.unneeded("lock-release-delay", "it sets no delay; here a rebooted node must stay Ready for 60s before the next one reboots")
	case c.flags.concurrency <= 1 && delay >= leastSpacing:
		spacing, longest := bounded(delay, mostSpacing)
		c.policy.Spec.Concurrency.Spacing = &v1alpha1.Duration{Duration: spacing}
		c.carried("lock-release-delay", fmt.Sprintf("concurrency.spacing: %s%s. The node is back in service during that time", moment.Short(spacing), longest))
	default:
		settle, longest := bounded(delay, mostSettle)
		c.policy.Spec.Reboot = &v1alpha1.Reboot{Settle: &v1alpha1.Duration{Duration: settle}}
		c.carried("lock-release-delay", fmt.Sprintf("reboot.settle: %s%s. The node stays cordoned during that time; kured put it back in service first", moment.Short(settle), longest))
	}
}

// owner is a holder of kured's lock. A concurrency above 1 allows several.
type owner struct {
	NodeID string  `json:"nodeID"`
	Locks  []owner `json:"locks"`
}

// holder reports the lock in a manifest that was read from the cluster: kured is at work, or was
// paused by hand.
func holder(c *conversion) error {
	value := c.kured.daemonSet.Annotations[c.flags.lockAnnotation]
	if value == "" {
		return nil
	}
	var lock owner
	if err := json.Unmarshal([]byte(value), &lock); err != nil {
		return fmt.Errorf("annotation %s is not a lock of kured: %w", c.flags.lockAnnotation, err)
	}
	var nodes []string
	for _, held := range append(lock.Locks, lock) {
		switch held.NodeID {
		case "":
		case "manual":
			c.policy.Spec.Pause = &v1alpha1.Pause{Reason: "kured was paused by hand: its lock was held by \"manual\""}
			c.report.carry("the lock, held by \"manual\"", "pause: somebody paused kured by hand. Remove spec.pause to go on")
		default:
			nodes = append(nodes, held.NodeID)
		}
	}
	if len(nodes) > 0 {
		c.report.leave("the lock, held by "+strings.Join(nodes, ", "),
			"kured is rebooting there now: wait until annotation "+c.flags.lockAnnotation+" is gone before you stop kured")
	}
	return nil
}

// bounded limits a duration to what a policy accepts, with a remark if that is less. It rounds up,
// because a policy accepts only whole seconds.
func bounded(d, most time.Duration) (taken time.Duration, remark string) {
	if taken = min((d + time.Second - 1).Truncate(time.Second), most); taken < d {
		remark = ", the longest there is"
	}
	return taken, remark
}
