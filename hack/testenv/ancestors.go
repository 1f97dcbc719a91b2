package testenv

import corev1 "k8s.io/api/core/v1"

// Prefixes of the keys that earlier operators leave on nodes.
const (
	PrefixCLUO      = "container-linux-update.v1.coreos.com/" // also of the COS operator
	PrefixFLUO      = "flatcar-linux-update.v1.flatcar-linux.net/"
	PrefixRPMOSTree = "atomic-update.v1.redhat.com/"
	PrefixCoreOS    = "reboot-agent.v1.demo.local/" // coreos-reboot-operator
	PrefixKured     = "weave.works/"
	PrefixSUC       = "upgrade.cattle.io/" // system-upgrade-controller
)

// MarkByAncestors adds everything by which earlier operators show that a reboot is requested,
// allowed and in progress, all at once. It does not cordon the node.
func MarkByAncestors(node *corev1.Node) {
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	if node.Labels == nil {
		node.Labels = map[string]string{}
	}
	for _, prefix := range []string{PrefixCLUO, PrefixFLUO, PrefixRPMOSTree} {
		for _, key := range []string{"reboot-needed", "reboot-ok", "reboot-in-progress", "reboot-paused", "agent-made-unschedulable"} {
			node.Annotations[prefix+key] = "true"
		}
		node.Annotations[prefix+"status"] = "UPDATE_STATUS_UPDATED_NEED_REBOOT"
		node.Annotations[prefix+"new-version"] = "9999.0.0"
		node.Annotations[prefix+"last-checked-time"] = "1501621307"
		node.Annotations[prefix+"agent-version"] = "0.7.0"
		for _, key := range []string{"reboot-needed", "before-reboot", "after-reboot", "agent"} {
			node.Labels[prefix+key] = "true"
		}
		node.Labels[prefix+"id"], node.Labels[prefix+"version"], node.Labels[prefix+"group"] = "flatcar", "1.2.3", "stable"
	}
	node.Annotations[PrefixRPMOSTree+"new-checksum"] = "4f5e"
	for _, key := range []string{"reboot-needed", "reboot", "reboot-in-progress"} {
		node.Annotations[PrefixCoreOS+key] = ""
	}
	node.Annotations[PrefixKured+"kured-reboot-in-progress"] = "2026-11-21T00:00:00Z"
	node.Annotations[PrefixKured+"kured-most-recent-reboot-needed"] = "2026-11-21T00:00:00Z"
	node.Annotations[PrefixKured+"kured-node-lock"] = `{"nodeID":"manual"}`
	node.Labels["plan."+PrefixSUC+"server-plan"] = "disabled"
	node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: PrefixKured + "kured-node-reboot", Effect: corev1.TaintEffectPreferNoSchedule})
}
