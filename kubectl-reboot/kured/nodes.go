package kured

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const (
	controlPlane = "node-role.kubernetes.io/control-plane"
	listTaints   = "kubectl get nodes -o custom-columns=NODE:.metadata.name,TAINTS:.spec.taints[*].key"
)

// nodeSelector: kured reboots the nodes its pods run on, and where they run the DaemonSet's template specifies.
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

// taints: kured keeps off nodes whose taints its pods do not tolerate; a policy does not look at taints.
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
		"kured keeps off nodes with other taints, a policy does not look at taints. Where you have such nodes, narrow nodeSelector: "+listTaints)
}

func toleratesAll(t corev1.Toleration) bool {
	return t.Key == "" && t.Operator == corev1.TolerationOpExists && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule)
}

func toleratesControlPlane(t corev1.Toleration) bool {
	// The taint has no value, so that a toleration without one equals it.
	return t.Key == controlPlane && (t.Operator == corev1.TolerationOpExists || t.Value == "") && (t.Effect == "" || t.Effect == corev1.TaintEffectNoSchedule)
}
