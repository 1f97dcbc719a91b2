package machine

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kubelet is the field manager of what a kubelet writes.
const Kubelet = "kubelet"

// reasons has the reasons of kubelets and of the node controller by the status of Ready.
var reasons = map[corev1.ConditionStatus]string{
	corev1.ConditionTrue: "KubeletReady", corev1.ConditionFalse: "KubeletNotReady", corev1.ConditionUnknown: "NodeStatusUnknown",
}

// Ready returns the status of Ready that fits the machine: True, or Unknown without power.
func (m *Machine) Ready() corev1.ConditionStatus {
	if m.IsUp() {
		return corev1.ConditionTrue
	}
	return corev1.ConditionUnknown
}

// Report shows the boot ID and a status of Ready on the Node, by the machine's clock.
func (m *Machine) Report(node *corev1.Node, ready corev1.ConditionStatus) {
	node.Status.NodeInfo.BootID = m.BootID()
	now := metav1.NewTime(m.Clock.Now()).Rfc3339Copy()
	c := corev1.NodeCondition{Type: corev1.NodeReady, Status: ready, Reason: reasons[ready], LastHeartbeatTime: now, LastTransitionTime: now}
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	switch {
	case i < 0:
		node.Status.Conditions = append(node.Status.Conditions, c)
	case node.Status.Conditions[i].Status != ready:
		node.Status.Conditions[i] = c
	}
}

// Post reports to the API server what fits the machine, in one revision. Each report is different.
func (m *Machine) Post(ctx context.Context, nodes client.Client, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	before := node.DeepCopy()
	m.Report(node, m.Ready())
	node.Status.Conditions[0].Message = "reported at " + time.Now().Format(time.RFC3339Nano)
	return nodes.Status().Patch(ctx, node, client.StrategicMergeFrom(before), client.FieldOwner(Kubelet))
}
