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

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// PatchNode patches a Node with a field manager, through the status subresource if the patch has a
// status.
func PatchNode(ctx context.Context, nodes client.Client, owner, name string, patch map[string]any) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding a change of node %q: %w", name, err)
	}
	node, raw := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.RawPatch(types.StrategicMergePatchType, text)
	if patch["status"] != nil {
		return nodes.Status().Patch(ctx, node, raw, client.FieldOwner(owner))
	}
	return nodes.Patch(ctx, node, raw, client.FieldOwner(owner))
}

// Condition returns a condition of a Node for a patch.
func Condition(kind corev1.NodeConditionType, status, reason string) map[string]any {
	return map[string]any{
		"type": kind, "status": status, "reason": reason, "lastTransitionTime": metav1.Now().Format(time.RFC3339),
	}
}

// Grant writes a ledger with one entry to a policy like the manager, if the policy exists, and then
// publishes the grant on a Node for its current boot. The caller sets the number and the state of
// the grant.
func Grant(ctx context.Context, api client.Client, name string, node *corev1.Node, grant protocol.Grant, edits ...func(*v1alpha1.LedgerEntry)) error {
	bootID, t, policy := node.Status.NodeInfo.BootID, metav1.Now(), &v1alpha1.RebootPolicy{}
	switch err := api.Get(ctx, client.ObjectKey{Name: name}, policy); {
	case client.IgnoreNotFound(err) != nil:
		return err
	case err == nil:
		policy.Status.Limit, policy.Status.Seq = 1, max(policy.Status.Seq, grant.Seq)
		entry := v1alpha1.LedgerEntry{Node: node.Name, NodeUID: node.UID, Seq: grant.Seq, BootID: bootID, At: t}
		for _, edit := range edits {
			edit(&entry)
		}
		policy.Status.Grants = []v1alpha1.LedgerEntry{entry}
		if err := api.Status().Update(ctx, policy); err != nil {
			return err
		}
	}
	grant.Policy, grant.BootID, grant.At = name, bootID, t
	annotations := map[string]string{v1alpha1.AnnotationGrant: grant.String()}
	return PatchNode(ctx, api, v1alpha1.FieldOwnerManager, node.Name, map[string]any{"metadata": map[string]any{"annotations": annotations}})
}
