package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
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
			if err := o.check(); err != nil {
				return err
			}
			for i := range args {
				args[i] = bareNode(args[i])
			}
			c, err := s.client()
			if err != nil {
				return err
			}
			policies, err := snapshot.Policies(cmd.Context(), c)
			if err != nil {
				return err
			}
			entries := history.Of(policies, args...)
			look := history.Look{Theme: s.Screen.Theme, Width: s.width(), Wide: o.wide(), Zone: s.Zone}
			return s.print(o, entries, func() []string { return history.Lines(entries, look, args...) })
		},
	}
	o.bind(cmd, asJSON, asYAML, asWide)
	return cmd
}

// bareNode takes the kind away from a node's name.
func bareNode(name string) string {
	if kind, rest, ok := strings.Cut(name, "/"); ok && slices.Contains(nodeKinds, kind) {
		return rest
	}
	return name
}
