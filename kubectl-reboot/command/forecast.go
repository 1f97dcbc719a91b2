package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/dashboard"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/timetable"
)

func forecastCommand(s *Session) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "forecast [POLICY...]",
		Short: "When each node will be rebooted, and when all is done",
		Long: `When each node will be rebooted, and when all is done: the planner that the manager runs, run forward over the coming
windows, with the durations that status.history has measured. What waits for a person or another system stays, and is shown apart.
A policy in mode DryRun is shown as if it acted.

-o svg draws one policy over the coming windows, and -o html is the page of kubectl reboot dashboard, standing still. Both need
nothing from elsewhere.`,
		Example: `  kubectl reboot forecast workers
  kubectl reboot forecast workers -o wide
  kubectl reboot forecast workers -o svg > workers.svg
  kubectl reboot forecast -o html > forecast.html`,
		ValidArgsFunction: named(0, s.policyNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showForecast(cmd.Context(), s, args, o)
		},
	}
	o.bind(cmd, asJSON, asYAML, asWide, asSVG, asHTML)
	return cmd
}

func showForecast(ctx context.Context, s *Session, names []string, o output) error {
	f, err := s.fleet(ctx)
	if err != nil {
		return err
	}
	policies, err := choose(f.Policies, names)
	if err != nil {
		return err
	}
	if o.format == asSVG && len(policies) != 1 {
		return fmt.Errorf("-o svg draws one policy: name it%s", existing(policies))
	}
	tables := make([]timetable.Timetable, len(policies))
	for i := range policies {
		tables[i] = timetable.Of(f, &policies[i])
	}
	switch o.format {
	case asSVG:
		return s.put(timetable.SVG(tables[0], s.Zone))
	case asHTML:
		page, err := dashboard.Render(dashboard.Of(f, dashboard.Options{Cluster: clusterName(s), Flags: s.clusterFlags(), Names: bare(policyKinds, names...), Zone: s.Zone}))
		if err != nil {
			return err
		}
		return s.put(page.HTML)
	}
	return s.print(o, tables, blocks(tables, func(t timetable.Timetable) []string { return t.Lines(s.look(o)) }))
}
