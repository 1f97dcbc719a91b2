package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func requestCommand(s *Session) *cobra.Command {
	w := writing{session: s}
	reason := ""
	cmd := &cobra.Command{
		Use:   "request (NODE... | -l SELECTOR | --all) --reason WHY",
		Short: "Ask for a reboot without an update",
		Long: `Ask for a reboot without an update, by annotation ` + v1alpha1.AnnotationRebootRequested + `. The nodes wait for
their turn like any other; the agent takes the annotation away after one confirmed reboot.`,
		Example: `  kubectl reboot request n4 n5 --reason="firmware update"
  kubectl reboot request -l pool=blue --reason="firmware update" --wait
  kubectl reboot request n4 --reason="firmware update" --dry-run=server -o yaml`,
		Args:              w.arguments("at least one node"),
		ValidArgsFunction: named(0, s.nodeNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(reason) == "" {
				return errors.New(`--reason is missing: it is shown wherever the request is reported`)
			}
			return w.each(cmd.Context(), args, findNode, func(object client.Object) (string, bool, error) {
				if why, there := object.GetAnnotations()[v1alpha1.AnnotationRebootRequested]; there {
					return fmt.Sprintf("reboot already requested (%s)", why), false, nil
				}
				annotate(object, v1alpha1.AnnotationRebootRequested, reason)
				return "reboot requested", true, nil
			})
		},
	}
	w.bind(cmd)
	w.selection.bind(cmd, &corev1.NodeList{}, "All nodes.")
	w.wait.bind(cmd, "each of the nodes is back in service and needs no reboot", upToDate)
	cmd.Flags().StringVar(&reason, "reason", "", "Why: shown wherever the request is reported. Required.")
	return cmd
}

func findNode(ctx context.Context, c client.Client, argument string) (client.Object, error) {
	return get(ctx, c, &corev1.Node{}, strings.TrimPrefix(argument, "node/"))
}
