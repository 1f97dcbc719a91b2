package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

func statusCommand(s *Session) *cobra.Command {
	v := statusView{session: s}
	follow := false
	cmd := &cobra.Command{
		Use:   "status [POLICY...]",
		Short: "The fleet at a glance",
		Long: `The fleet at a glance: each policy with its limit, its window and its nodes, which reboots are in progress, in which phase and for
how long, and why the others wait.

With --watch it is drawn again in place whenever something changes; in a pipe there is one line for each change.`,
		Example: `  kubectl reboot status
  kubectl reboot status workers --watch
  kubectl reboot status -o wide`,
		ValidArgsFunction: named(0, s.policyNames),
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
			is := status.Of(f, names...)
			return s.print(v.output, is, func() []string { return is.Lines(s.look(v.output)) })
		},
	}
	v.bind(cmd, asJSON, asYAML, asWide)
	cmd.Flags().BoolVarP(&follow, "watch", "w", false, "Watch for changes: redraw in a terminal, print a line for each change in a pipe.")
	return cmd
}

// statusView shows the status of policies; no names: of all.
type statusView struct {
	output

	session *Session
	names   []string
}

// watch shows the status again and again until the context ends.
func (v *statusView) watch(ctx context.Context) error {
	screen := v.session.Screen
	defer screen.Close()
	if screen.Live {
		return watch(ctx, v.session, second, func(f fleet.Fleet, trouble string) {
			screen.Draw(v.frame(status.Of(f, v.names...), trouble))
		})
	}
	var before status.Status
	troubled := ""
	return watch(ctx, v.session, 0, func(f fleet.Fleet, trouble string) {
		is := status.Of(f, v.names...)
		lines := is.Changes(before, v.session.Zone)
		if len(lines) > 0 {
			screen.Print(screen.Theme.Lines(lines)...)
		}
		if trouble != "" && trouble != troubled {
			screen.Print(screen.Theme.Line(trouble))
		}
		before, troubled = is, trouble
	})
}

// frame is the status in as many lines as the terminal has, and when it is of.
func (v *statusView) frame(is status.Status, trouble string) []string {
	screen := v.session.Screen
	width, height := screen.Size()
	lines := is.Lines(v.session.look(v.output))
	foot := is.At.In(v.session.Zone).Format("15:04:05") + "  Ctrl-C ends"
	if trouble != "" {
		foot = screen.Theme.Paint(terminal.Bad, terminal.Cut(trouble, width))
	}
	return append(screen.Crop(lines, height-3), "", foot)
}
