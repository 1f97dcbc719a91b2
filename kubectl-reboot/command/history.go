package command

import (
	"github.com/spf13/cobra"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/history"
)

func historyCommand(s *Session) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "history [NODE...]",
		Short: "How the last reboots of nodes ended",
		Long: `How the last reboots of nodes ended, with versions and durations, the newest last: what status.history of all policies
remembers, which is at most the last 20 of each. Nodes that are gone are remembered, too.`,
		Example: `  kubectl reboot history n4
  kubectl reboot history -o wide`,
		ValidArgsFunction: named(0, s.nodeNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			args = bare(nodeKinds, args...)
			policies, err := s.policies(cmd.Context())
			if err != nil {
				return err
			}
			entries := history.Of(policies, args...)
			return s.print(o, entries, func() []string { return history.Lines(entries, s.look(o), args...) })
		},
	}
	o.bind(cmd, asJSON, asYAML, asWide)
	return cmd
}
