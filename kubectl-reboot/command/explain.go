package command

import (
	"context"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/explanation"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
)

func explainCommand(s *Session) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "explain NODE",
		Short: "Why a node is not rebooting, or how far it is",
		Long: `Why a node is not rebooting, or how far its reboot is: which policy answers for it, whether it needs a reboot and why,
the one reason why it waits, every check in its order, what has happened and what is to come, and what to do.`,
		Example: `  kubectl reboot explain n4
  kubectl reboot explain n4 -o json`,
		Args:              exactly(1, "the node"),
		ValidArgsFunction: named(1, s.nodeNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := s.fleet(cmd.Context())
			if err != nil {
				return err
			}
			name := bare(nodeKinds, args[0])[0]
			if node := requested(cmd.Context(), s, f, name); node != nil {
				f = f.Whole(node)
			}
			e, err := explanation.Of(f, name)
			if err != nil {
				return err
			}
			return s.print(o, e, func() []string { return e.Lines(s.look(o)) })
		},
	}
	o.bind(cmd, asJSON, asYAML)
	return cmd
}

// requested is a node whose reboot is requested, with what reports when. Nil: it is not, or cannot be read.
func requested(ctx context.Context, s *Session, f fleet.Fleet, name string) *corev1.Node {
	object, _ := f.Node(name)
	if object == nil {
		return nil
	}
	c, err := s.client()
	if _, is := v1alpha1.RebootRequested(object); !is || err != nil {
		return nil
	}
	node := &corev1.Node{}
	if c.Get(ctx, client.ObjectKey{Name: name}, node) != nil {
		return nil // the request is explained without its time
	}
	return node
}
