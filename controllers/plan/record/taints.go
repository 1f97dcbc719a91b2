package record

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// maxTaints bounds the taints in a grant. With that many, no taint counts as a startup taint.
const maxTaints = 32

// followReady are the taints that mirror condition Ready and the cordon. Other checks already cover
// those.
var followReady = []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable}

// TaintsThatKeepPodsOff returns the taints of a node that keep new pods off it, each as key:effect.
// It leaves out those of this operator, and those of an autoscaler that is deleting the node.
func TaintsThatKeepPodsOff(taints []corev1.Taint) []string {
	var all []string
	for _, t := range taints {
		keeps := t.Effect == corev1.TaintEffectNoSchedule || t.Effect == corev1.TaintEffectNoExecute
		if keeps && !isPending(t) && deleters[t.Key] == "" && !slices.Contains(followReady, t.Key) && len(all) < maxTaints {
			all = append(all, t.Key+":"+string(t.Effect))
		}
	}
	return all
}

// StartupTaint returns a taint that keeps pods off the node and that it did not have when its
// reboot was granted, or "". A node that somebody has uncordoned is in service in spite of its
// taints.
func StartupTaint(n *Node) string {
	if n.Grant == nil || !n.Cordoned || len(n.Grant.Taints) >= maxTaints {
		return ""
	}
	for _, taint := range TaintsThatKeepPodsOff(n.Taints) {
		if !slices.Contains(n.Grant.Taints, taint) {
			return taint
		}
	}
	return ""
}
