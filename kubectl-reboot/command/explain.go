package command

import (
	"github.com/spf13/cobra"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/explanation"
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
			e, err := explanation.Of(f, bare(nodeKinds, args[0])[0])
			if err != nil {
				return err
			}
			return s.print(o, e, func() []string { return e.Lines(s.look(o)) })
		},
	}
	o.bind(cmd, asJSON, asYAML)
	return cmd
}
