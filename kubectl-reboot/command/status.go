package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

func (s *Session) status() *cobra.Command {
	var o output
	watch := false
	cmd := &cobra.Command{
		Use:   "status [POLICY...]",
		Short: "The fleet at a glance",
		Long: `The fleet at a glance: each policy with its limit, its window and its nodes, who is in flight, in which phase and for
how long, and why the others wait.

With --watch it is drawn again in place whenever something changes; in a pipe there is one line for each change.`,
		Example: `  kubectl reboot status
  kubectl reboot status workers --watch
  kubectl reboot status -o wide`,
		ValidArgsFunction: named(0, s.policyNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			for i := range args {
				args[i] = bare(args[i])
			}
			if watch && o.format != "" && !o.wide() {
				return errors.New("--watch shows text only: leave out --output")
			}
			f, err := s.fleet(cmd.Context())
			if err != nil {
				return err
			}
			if _, err := choose(f.Policies, args); err != nil {
				return err
			}
			if watch {
				return s.watchStatus(cmd.Context(), o, args)
			}
			return s.showStatus(o, f, args)
		},
	}
	o.bind(cmd, asJSON, asYAML, asWide)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "Go on: redraw in a terminal, a line for each change in a pipe.")
	return cmd
}

func (s *Session) look(o output) status.Look {
	return status.Look{Theme: s.Screen.Theme, Width: s.width(), Wide: o.wide(), Zone: s.Zone}
}

func (s *Session) showStatus(o output, f fleet.Fleet, names []string) error {
	is := status.Of(f, names...)
	return s.print(o, is, func() []string { return is.Lines(s.look(o)) })
}

// watchStatus shows the status again and again until the context ends.
func (s *Session) watchStatus(ctx context.Context, o output, names []string) error {
	defer s.Screen.Close()
	if s.Screen.Live {
		return s.watch(ctx, second, func(f fleet.Fleet, trouble string) {
			s.Screen.Draw(s.frame(o, status.Of(f, names...), trouble))
		})
	}
	var before status.Status
	troubled := ""
	return s.watch(ctx, 0, func(f fleet.Fleet, trouble string) {
		is := status.Of(f, names...)
		lines := is.Changes(before, s.Zone)
		if len(lines) > 0 {
			s.Screen.Print(s.Screen.Theme.Lines(lines)...)
		}
		if trouble != "" && trouble != troubled {
			s.Screen.Print(s.Screen.Theme.Line(trouble))
		}
		before, troubled = is, trouble
	})
}

// frame is the status in as many lines as the terminal has, and when it is of.
func (s *Session) frame(o output, is status.Status, trouble string) []string {
	width, height := s.Screen.Size()
	lines := is.Lines(s.look(o))
	foot := is.At.In(s.Zone).Format("15:04:05") + "  Ctrl-C ends"
	if trouble != "" {
		foot = s.Screen.Theme.Paint(terminal.Bad, terminal.Cut(trouble, width))
	}
	return append(terminal.Crop(lines, height-3), "", foot)
}
