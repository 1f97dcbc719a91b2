package plan

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
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

// awaitTaints reports whether a startup taint still keeps pods off the node. A removed taint leaves
// no timestamp, so the node records when it was first seen and when it was gone.
func (t *tracker) awaitTaints() bool {
	taint, noted := StartupTaint(t.Node), t.noted()
	if taint == "" && (noted == nil || noted.TakesPods == nil || *noted.TakesPods) {
		return false
	}
	t.Message = "back; settling begins"
	if taint != "" {
		t.Message = fmt.Sprintf("back, but taint %s keeps pods off the node since the reboot; settling begins once it is gone", taint)
	}
	if taint == "" || noted == nil || noted.TakesPods == nil || *noted.TakesPods {
		t.Action, t.takesPods = NoteTaint, taint == ""
		return true
	}
	timeout := t.f.Policy.Spec.RebootOrDefault().TimeoutOrDefault()
	t.overdue(noted.At.Add(timeout), v1alpha1.ReasonStartupTaint, fmt.Sprintf(
		"the node is Ready, but taint %s has kept pods off it since the reboot, for more than %s; its slot is kept: look at what removes the "+
			"taint, or if it is to stay, run: kubectl uncordon %s", taint, timeout, t.Node.Name))
	return true
}

// noted returns what the node records after its boot, or nil.
func (t *tracker) noted() *protocol.HookPhase {
	if !t.inHookPhase(v1alpha1.HooksAfter, nil) {
		return nil
	}
	return t.Node.Hooks
}
