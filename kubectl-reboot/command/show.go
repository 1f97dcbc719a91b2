package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/calendar"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/dashboard"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/explanation"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/history"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/report"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/timetable"
)

func statusCommand(s *Session) *cobra.Command {
	v := statusView{session: s}
	follow := false
	cmd := &cobra.Command{
		Use:   "status [POLICY...]",
		Short: "Show policies and nodes",
		Long: `Show each policy with its limit, window and nodes, the reboots in progress with
their phase and duration, and why the other nodes wait.

With --watch the screen is updated whenever something changes. If the output is a
pipe, each change is printed as a line.`,
		Example: `  kubectl reboot status
  kubectl reboot status workers --watch
  kubectl reboot status -o wide`,
		ValidArgsFunction: completeNames(0, s.policyNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if follow && v.format != "" && v.format != asWide {
				return errors.New("--watch shows text only: leave out --output")
			}
			f, names, err := s.fleetOf(cmd.Context(), args)
			if err != nil {
				return err
			}
			v.names = names
			if follow {
				return v.watch(cmd.Context())
			}
			current := status.Of(f, names...)
			return s.print(v.output, current, func() []string { return current.Lines(s.look(v.output)) })
		},
	}
	v.bind(cmd, asJSON, asYAML, asWide)
	cmd.Flags().BoolVarP(&follow, "watch", "w", false, "Watch for changes: redraw in a terminal, print a line for each change in a pipe.")
	return cmd
}

// statusView shows the status of the named policies, or of all.
type statusView struct {
	output

	session *Session
	names   []string
}

// watch shows the status until the context ends.
func (v *statusView) watch(ctx context.Context) error {
	screen := v.session.Screen
	defer screen.Close()
	if screen.Live {
		return watch(ctx, v.session, time.Second, func(f fleet.Fleet, trouble string) {
			screen.Draw(v.frame(f, trouble))
		})
	}
	var before status.Status
	troubled := ""
	return watch(ctx, v.session, leasePace, func(f fleet.Fleet, trouble string) {
		current := status.Of(f, v.names...)
		lines := current.Changes(before, v.session.Zone)
		if len(lines) > 0 {
			screen.Print(screen.Theme.Lines(lines)...)
		}
		if trouble == current.ManagerTrouble() { // one of the changes
			trouble = ""
		}
		v.session.printTrouble(troubled, trouble)
		before, troubled = current, trouble
	})
}

// frame returns the status, with its time, cut to the height of the terminal.
func (v *statusView) frame(f fleet.Fleet, trouble string) []string {
	screen, current := v.session.Screen, status.Of(f, v.names...)
	width, height := screen.Size()
	lines := append(v.session.warning(f.Manager), current.Lines(v.session.look(v.output))...)
	foot := current.At.In(v.session.Zone).Format("15:04:05") + "  Ctrl-C ends"
	if trouble != "" && trouble != current.ManagerTrouble() {
		foot = screen.Theme.Paint(terminal.Bad, terminal.Cut(trouble, width))
	}
	return append(screen.Crop(lines, height-3), "", foot)
}

func explainCommand(s *Session) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "explain NODE",
		Short: "Explain why a node is not rebooting, or how far its reboot is",
		Long: `Explain why a node is not rebooting, or how far its reboot is: which policy governs
it, whether and why it needs a reboot, the reason why it waits, the result of every
check, what has happened and what comes next, and what you can do.`,
		Example: `  kubectl reboot explain n4
  kubectl reboot explain n4 -o json`,
		Args:              oneNode,
		ValidArgsFunction: completeNames(1, s.nodeNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := s.fleet(cmd.Context())
			if err != nil {
				return err
			}
			name, unread := bare(nodeKinds, args[0])[0], error(nil)
			if _, n := f.Node(name); n != nil {
				f, unread = lookAtPods(cmd.Context(), s, f, n)
			}
			e, err := explanation.Of(f, name)
			if err != nil {
				return err
			}
			if unread != nil {
				e.Pods = "not known, because they cannot be read: " + unread.Error()
			}
			return s.print(o, e, func() []string { return e.Lines(s.look(o)) })
		},
	}
	o.bind(cmd, asJSON, asYAML)
	return cmd
}

func forecastCommand(s *Session) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "forecast [POLICY...]",
		Short: "Show when each node will be rebooted, and when all are done",
		Long: `Show when each node will be rebooted, and when all are done. The forecast runs the
manager's planner over the coming windows, with the durations in status.history.
Nodes that wait for a person or another system are listed separately. A policy in
mode DryRun is shown as if it had mode Enforce.

-o svg draws one policy over the coming windows, and -o html writes the page of
kubectl reboot dashboard as it is now. Both files load nothing from elsewhere.`,
		Example: `  kubectl reboot forecast workers
  kubectl reboot forecast workers -o wide
  kubectl reboot forecast workers -o svg > workers.svg
  kubectl reboot forecast -o html > forecast.html`,
		ValidArgsFunction: completeNames(0, s.policyNames),
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
		return s.export(timetable.SVG(tables[0], s.Zone))
	case asHTML:
		page, err := dashboard.Render(dashboard.Of(f, dashboard.Options{Cluster: clusterName(s), Flags: s.clusterFlags(), Names: bare(policyKinds, names...), Zone: s.Zone}))
		if err != nil {
			return err
		}
		return s.export(page.HTML)
	}
	return s.print(o, tables, blocks(tables, func(t timetable.Timetable) []string { return t.Lines(s.look(o)) }))
}

// mostOpenings is the maximum of --next.
const mostOpenings = 1000

func windowsCommand(s *Session) *cobra.Command {
	var o output
	next := 10
	cmd := &cobra.Command{
		Use:   "windows [POLICY...]",
		Short: "Show the coming windows, in their time zones and in UTC",
		Long: `Show the coming windows of policies, in their time zones and in UTC, with the
blackouts and clock changes between them. They are computed from the spec by this
program. A halt or a pause, during which no reboot starts, is shown above them.`,
		Example: `  kubectl reboot windows workers
  kubectl reboot windows workers --next 50 -o wide`,
		ValidArgsFunction: completeNames(0, s.policyNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if next < 1 || next > mostOpenings {
				return fmt.Errorf("--next must be from 1 to %d", mostOpenings)
			}
			return showWindows(cmd.Context(), s, args, o, next)
		},
	}
	o.bind(cmd, asJSON, asYAML, asWide)
	cmd.Flags().IntVar(&next, "next", next, "Number of windows to show for each policy.")
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

func historyCommand(s *Session) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "history [NODE...]",
		Short: "Show how the last reboots of nodes ended",
		Long: `Show how the last reboots of nodes ended, with versions and durations, the newest
last. They come from status.history of all policies, which holds at most the last
10 reboots of each policy. Nodes that were deleted are included.`,
		Example: `  kubectl reboot history n4
  kubectl reboot history -o wide`,
		ValidArgsFunction: completeNames(0, s.nodeNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			args = bare(nodeKinds, args...)
			policies, err := s.policies(cmd.Context())
			if err != nil {
				return err
			}
			attempts := history.Of(policies, args...)
			if err := anyKnown(cmd.Context(), s, attempts, args); err != nil {
				return err
			}
			return s.print(o, attempts, func() []string { return history.Lines(attempts, s.look(o), args...) })
		},
	}
	o.bind(cmd, asJSON, asYAML, asWide)
	return cmd
}

// anyKnown refuses names that are neither in the history nor names of nodes, because they must be
// mistakes.
func anyKnown(ctx context.Context, s *Session, attempts []history.Attempt, names []string) error {
	c, err := s.client()
	if err != nil {
		return err
	}
	for _, name := range names {
		if slices.ContainsFunc(attempts, func(a history.Attempt) bool { return a.Node == name }) {
			continue
		}
		switch _, err := get(ctx, c, &corev1.Node{}, name); {
		case apierrors.IsNotFound(err):
			return fmt.Errorf("node %q not found, and status.history has no reboot of it", name)
		case err != nil:
			return err
		}
	}
	return nil
}

func reportCommand(s *Session) *cobra.Command {
	var o output
	selector := ""
	cmd := &cobra.Command{
		Use:   "report [POLICY...]",
		Short: "List what each node runs, when it began to need a reboot, and why it waits",
		Long: `List what each node runs, when it began to need a reboot, and why it waits: one row
for each node, for audits and spreadsheets. Without names it lists all nodes of the
cluster, including those without a policy.`,
		Example: `  kubectl reboot report
  kubectl reboot report workers -o csv > workers.csv
  kubectl reboot report -l pool=blue -o json`,
		ValidArgsFunction: completeNames(0, s.policyNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runReport(cmd.Context(), s, args, selector, o)
		},
	}
	o.bind(cmd, asTable, asCSV, asJSON)
	cmd.Flags().StringVarP(&selector, "selector", "l", "", "The nodes that these labels select, such as pool=blue,zone!=a.")
	return cmd
}

func runReport(ctx context.Context, s *Session, args []string, selector string, o output) error {
	selects, err := parseSelector(selector)
	if err != nil {
		return err
	}
	f, names, err := s.fleetOf(ctx, args)
	if err != nil {
		return err
	}
	rows := report.Of(f, func(policy string, of map[string]string) bool {
		return selects.Matches(labels.Set(of)) && (len(names) == 0 || slices.Contains(names, policy))
	})
	if len(rows) == 0 {
		fmt.Fprintln(s.ErrOut, "warning: no node matches")
	}
	if o.format == asCSV {
		text, err := report.CSV(rows)
		if err != nil {
			return err
		}
		return s.export(text)
	}
	return s.print(o, rows, func() []string { return report.Lines(rows, s.look(o)) })
}
