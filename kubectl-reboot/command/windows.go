package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/calendar"
)

// mostOpenings is the most that --next takes.
const mostOpenings = 1000

func windowsCommand(s *Session) *cobra.Command {
	var o output
	next := 10
	cmd := &cobra.Command{
		Use:   "windows [POLICY...]",
		Short: "The coming windows, in their own time and in UTC",
		Long: `The coming windows of policies, by the clocks of their time zones and in UTC, with the blackouts and the clock changes
that come in between. They are computed from the spec, here.`,
		Example: `  kubectl reboot windows workers
  kubectl reboot windows workers --next 50 -o wide`,
		ValidArgsFunction: named(0, s.policyNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if next < 1 || next > mostOpenings {
				return errors.New("--next must be from 1 to 1000")
			}
			return showWindows(cmd.Context(), s, args, o, next)
		},
	}
	o.bind(cmd, asJSON, asYAML, asWide)
	cmd.Flags().IntVar(&next, "next", next, "How many openings of each policy to show.")
	return cmd
}

func showWindows(ctx context.Context, s *Session, names []string, o output, next int) error {
	policies, err := s.policies(ctx)
	if err != nil {
		return err
	}
	if policies, err = choose(policies, names); err != nil {
		return err
	}
	now := s.Clock.Now()
	calendars := make([]calendar.Calendar, len(policies))
	for i := range policies {
		calendars[i] = calendar.Of(&policies[i], now, next)
	}
	return s.print(o, calendars, blocks(calendars, func(c calendar.Calendar) []string { return c.Lines(s.look(o), now) }))
}
