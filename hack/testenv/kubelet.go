package testenv

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ready is the condition of a Node as of an instant.
func Ready(status corev1.ConditionStatus, reason, message string, at time.Time) corev1.NodeCondition {
	now := metav1.NewTime(at)
	return corev1.NodeCondition{
		Type: corev1.NodeReady, Status: status, Reason: reason, Message: message, LastHeartbeatTime: now, LastTransitionTime: now,
	}
}

// ReportReady writes the status of a Node as its kubelet does, in one revision. No boot ID: that stays as it is.
func ReportReady(ctx context.Context, nodes client.Client, name, bootID string, ready corev1.NodeCondition) error {
	status := map[string]any{"conditions": []corev1.NodeCondition{ready}}
	if bootID != "" {
		status["nodeInfo"] = map[string]any{"bootID": bootID}
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encoding the status of node %q: %w", name, err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return nodes.Status().Patch(ctx, node, client.RawPatch(types.StrategicMergePatchType, patch))
}
