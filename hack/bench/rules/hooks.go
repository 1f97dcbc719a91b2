package rules

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// Approve plays the hooks, each of which approves as soon as it is asked, until ctx ends: those of the objects of a list, which are Nodes or
// policies.
func Approve(ctx context.Context, c client.WithWatch, list client.ObjectList) error {
	changes, err := c.Watch(ctx, list)
	if err != nil {
		return fmt.Errorf("watching whom hooks are asked about: %w", err)
	}
	defer changes.Stop()
	for change := range changes.ResultChan() {
		object, is := change.Object.(client.Object)
		if !is || change.Type == watch.Deleted {
			continue
		}
		approval := approvalOf(object)
		if approval == "" {
			continue
		}
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, Answer, approval)
		if err := c.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
			return fmt.Errorf("approving %s: %w", object.GetName(), err)
		}
	}
	if ctx.Err() == nil {
		return errors.New("the watch of those whom hooks are asked about has ended")
	}
	return nil
}

// approvalOf is what the hook answers. Empty: it is not asked, or has answered.
func approvalOf(object client.Object) string {
	switch object := object.(type) {
	case *corev1.Node:
		return Approval(object)
	case *v1alpha1.RebootPolicy:
		if run := object.Status.Run; run != nil && run.Hooks != nil && len(run.Hooks.Asked) > 0 {
			if value := plan.RunAnswer(run.Hooks, "true"); object.Annotations[Answer] != value {
				return value
			}
		}
	}
	return ""
}

// Approval is what the hook answers about a node. Empty: it is not asked, or has answered.
func Approval(node *corev1.Node) string {
	phase, err := protocol.ParseHookPhase(node.Annotations)
	if err != nil || phase == nil || node.Annotations[Answer] != "" {
		return ""
	}
	return "true"
}
