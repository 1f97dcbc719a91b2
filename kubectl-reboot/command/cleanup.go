package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// ours is the prefix of the operator's annotations, labels and taint on Nodes.
const ours = "reboot-operator.io/"

func cleanupCommand(s *Session) *cobra.Command {
	w := writeOptions{session: s}
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove what the operator left on Nodes after it was removed",
		Long: `Remove what the operator left on Nodes after it was removed: its annotations,
labels, conditions and taint, its marks for autoscalers and load balancers, and
what administrators set for it. A node that only the operator cordoned is
uncordoned. Other cordons stay, and are listed.

It writes nothing while RebootPolicies exist.`,
		Example: `  kubectl reboot cleanup --dry-run=client
  kubectl reboot cleanup`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s.rights = "cleanup needs the right to patch nodes and nodes/status, as cluster-admin has it"
			c, err := w.client()
			if err != nil {
				return err
			}
			if err := noPolicies(cmd.Context(), c); err != nil {
				return err
			}
			return w.cleanup(cmd.Context(), c)
		},
	}
	w.bind(cmd)
	return cmd
}

// noPolicies fails if a policy exists, because a manager may still act on the Nodes' annotations.
func noPolicies(ctx context.Context, c client.Client) error {
	var policies v1alpha1.RebootPolicyList
	switch err := c.List(ctx, &policies); {
	case apierrors.IsNotFound(err): // the CustomResourceDefinition is gone
		return nil
	case err != nil:
		return fmt.Errorf("listing policies: %w", err)
	case len(policies.Items) > 0:
		return errors.New("nothing is removed while policies exist" + existing(policies.Items) +
			". Remove them first, while the operator runs: it ends granted reboots. " + howToRemove(policies.Items))
	}
	return nil
}

// howToRemove names the command that fits the way in which the policies were applied.
func howToRemove(policies []v1alpha1.RebootPolicy) string {
	for i := range policies {
		p := &policies[i]
		switch release := p.Annotations["meta.helm.sh/release-name"]; {
		case p.Labels["helm.toolkit.fluxcd.io/name"] != "":
			return "Flux applies them: kubectl delete helmrelease -n " + p.Labels["helm.toolkit.fluxcd.io/namespace"] + " " + p.Labels["helm.toolkit.fluxcd.io/name"]
		case p.Labels["kustomize.toolkit.fluxcd.io/name"] != "":
			return "Flux applies them: remove them from its source, Kustomization " + p.Labels["kustomize.toolkit.fluxcd.io/name"]
		case p.Annotations["argocd.argoproj.io/tracking-id"] != "":
			application, _, _ := strings.Cut(p.Annotations["argocd.argoproj.io/tracking-id"], ":")
			return "Argo CD applies them: remove them from Application " + application
		case release != "":
			return fmt.Sprintf("Helm applies them: helm uninstall %s --namespace %s", release, p.Annotations["meta.helm.sh/release-namespace"])
		}
	}
	return "make undeploy removes them and the operator, and kubectl delete rebootpolicies --all only them"
}

// cleanup cleans all nodes, and continues after an error.
func (w *writeOptions) cleanup(ctx context.Context, c client.Client) error {
	var nodes corev1.NodeList
	if err := c.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing nodes: %w", err)
	}
	remaining := slices.DeleteFunc(nodes.Items, func(n corev1.Node) bool { return clean(n.DeepCopy()) == "" })
	if len(remaining) == 0 {
		fmt.Fprintln(w.session.ErrOut, "No node has anything that the operator left.")
	}
	return errors.Join(forEach(ctx, len(remaining), func(i int) error { return w.cleanNode(ctx, c, &remaining[i]) })...)
}

// cleanNode prints what was removed after the conditions are removed too.
func (w *writeOptions) cleanNode(ctx context.Context, c client.Client, node *corev1.Node) error {
	done, err := w.write(ctx, c, node, byKind(func(n *corev1.Node) (string, error) { return clean(n), nil }, nil))
	if err == nil && w.dryRun != dryRunClient {
		err = cleanStatus(ctx, c, node.Name)
	}
	if err != nil {
		return err
	}
	if node.Spec.Unschedulable {
		done += "; it stays cordoned: " + w.session.command("kubectl uncordon %s", node.Name)
	}
	return w.printDone(node, done)
}

// clean removes everything that the operator wrote to a Node, and lists it. It returns "" if it
// found nothing.
func clean(n *corev1.Node) string {
	var removed []string
	note := func(action string, names []string) {
		if slices.Sort(names); len(names) > 0 {
			removed = append(removed, action+" "+strings.Join(names, ", "))
		}
	}
	if protocol.Uncordons(n) { // before the record that shows whose cordon it is goes
		n.Spec.Unschedulable = false
		removed = append(removed, "cordon")
	}
	markers, exclusion := withoutMarkers(n)
	note("annotations", append(without(n.Annotations), markers...))
	note("labels", append(without(n.Labels), exclusion...))
	var taints, conditions []string
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		if t.Key != v1alpha1.TaintPending {
			return false
		}
		taints = append(taints, t.Key)
		return true
	})
	note("taint", taints)
	n.Status.Conditions = slices.DeleteFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		if !slices.Contains([]corev1.NodeConditionType{v1alpha1.NodeRebootRequired, v1alpha1.NodeRebootPermitted, v1alpha1.NodeRebootFailed}, c.Type) &&
			!isAgents(n, c.Type) && !v1alpha1.IsPlanned(c) {
			return false
		}
		conditions = append(conditions, string(c.Type))
		return true
	})
	note("conditions", conditions)
	if len(removed) == 0 {
		return ""
	}
	return "cleaned of " + strings.Join(removed, "; ")
}

// isAgents reports whether only the agent has written a KEP-5683 condition. Any maintenance program
// may write these conditions, and only managedFields show which one did.
func isAgents(n *corev1.Node, kind corev1.NodeConditionType) bool {
	if !slices.Contains([]corev1.NodeConditionType{corev1.NodeDrainInProgress, corev1.NodeDrained, corev1.NodeMaintenanceInProgress}, kind) {
		return false
	}
	var writers []string
	for _, m := range n.ManagedFields {
		var fields struct {
			Status struct {
				Conditions map[string]any `json:"f:conditions"`
			} `json:"f:status"`
		}
		if m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.GetRawBytes(), &fields) != nil {
			continue // fields that cannot be parsed are ignored
		}
		if _, ok := fields.Status.Conditions[fmt.Sprintf(`k:{"type":%q}`, kind)]; ok {
			writers = append(writers, m.Manager)
		}
	}
	return slices.Equal(writers, []string{v1alpha1.FieldOwnerAgent})
}

// withoutMarkers removes the annotations and labels with which a grant keeps autoscalers, health
// controllers and load balancers away, and returns their keys.
func withoutMarkers(n *corev1.Node) (annotations, labels []string) {
	of := record.Of(n)
	annotations = of.AnnotationsToRemove()
	for _, key := range annotations {
		delete(n.Annotations, key)
	}
	if of.RemovesExclusion() {
		labels = []string{v1alpha1.LabelExcludeFromLoadBalancers}
		delete(n.Labels, v1alpha1.LabelExcludeFromLoadBalancers)
	}
	if of.RemovesRemediation() {
		labels = append(labels, v1alpha1.LabelExcludeFromRemediation)
		delete(n.Labels, v1alpha1.LabelExcludeFromRemediation)
	}
	return annotations, labels
}

// without removes the operator's keys and returns them.
func without(values map[string]string) []string {
	var gone []string
	maps.DeleteFunc(values, func(key, _ string) bool {
		if !strings.HasPrefix(key, ours) {
			return false
		}
		gone = append(gone, strings.TrimPrefix(key, ours))
		return true
	})
	return gone
}

// cleanStatus removes the conditions, which need a write to the status subresource.
func cleanStatus(ctx context.Context, c client.Client, name string) error {
	err := retry.RetryOnConflict(patience, func() error {
		var n corev1.Node
		if err := c.Get(ctx, client.ObjectKey{Name: name}, &n); err != nil {
			return err
		}
		before := n.DeepCopy()
		if clean(&n); len(n.Status.Conditions) == len(before.Status.Conditions) {
			return nil
		}
		return c.Status().Patch(ctx, &n, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return fmt.Errorf("writing the conditions of node %q: %w", name, err)
	}
	return nil
}
