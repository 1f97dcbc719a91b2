package command

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

func retryCommand(s *Session) *cobra.Command {
	w := writeOptions{session: s, reboots: true}
	cmd := &cobra.Command{
		Use:   "retry (NODE... | -l SELECTOR | --all)",
		Short: "Try failed nodes again without waiting for the back-off",
		Long: `Try nodes again whose last attempt failed, without waiting for their back-off,
with annotation ` + v1alpha1.AnnotationRetry + `. Windows, gates, maxUnavailable and all
other checks still apply.

The annotation names the attempt that failed. If the next attempt fails too, the
node backs off again.`,
		Example: `  kubectl reboot retry n4
  kubectl reboot retry n4 n5 --wait
  kubectl reboot retry --all --dry-run=client`,
		Args:              w.arguments("at least one node"),
		ValidArgsFunction: completeNames(0, s.nodeNames),
		RunE:              func(cmd *cobra.Command, args []string) error { return retryNodes(cmd.Context(), &w, args) },
	}
	w.bind(cmd)
	w.ask(cmd, "This retries those of %s that back off. Continue?")
	w.selection.bind(cmd, &corev1.NodeList{}, "All nodes.")
	w.wait.bind(cmd, "each of the nodes is back in service and needs no reboot", notInService)
	return cmd
}

// retryNodes writes the annotation on the nodes that back off, and leaves the others alone.
func retryNodes(ctx context.Context, w *writeOptions, arguments []string) error {
	policies, err := w.session.policies(ctx)
	if err != nil {
		return err
	}
	governor := governor.Of(policies)
	return w.each(ctx, arguments, findNode, byKind(func(n *corev1.Node) (string, error) {
		view := record.Of(n)
		name := governor.Govern(&view).Policy
		for i := range policies {
			if policies[i].Name != name {
				continue
			}
			until, attempt := record.BackOff(&policies[i], &view, w.session.Clock.Now())
			if until.IsZero() {
				break
			}
			metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1alpha1.AnnotationRetry, strconv.FormatInt(attempt, 10))
			return "retried", nil
		}
		return "does not back off; to see what it waits for, run: " + w.session.command("kubectl reboot explain %s", n.Name), nil
	}, nil))
}
