package command

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// The formats of -o.
const (
	asJSON = "json"
	asYAML = "yaml"
	asWide = "wide"
	asSVG  = "svg"
	asHTML = "html"
	// asTable is the default.
	asTable = "table"
	asCSV   = "csv"
)

// output is the flag -o of commands that print their own types.
type output struct{ format string }

func (o *output) bind(cmd *cobra.Command, formats ...string) {
	cmd.PreRunE = func(*cobra.Command, []string) error {
		if o.format != "" && !slices.Contains(formats, o.format) {
			return fmt.Errorf("--output %q must be one of %s", o.format, strings.Join(formats, ", "))
		}
		return nil
	}
	cmd.Flags().StringVarP(&o.format, "output", "o", "", "Output format. One of: ("+strings.Join(formats, ", ")+").")
	completeFlag(cmd, "output", oneOf(formats...))
}

// print prints a value as JSON or YAML, or its lines for people.
func (s *Session) print(o output, value any, lines func() []string) error {
	var text []byte
	var err error
	switch o.format {
	case asJSON:
		text, err = json.MarshalIndent(value, "", "    ")
		text = []byte(terminal.Escaped(string(text)) + "\n")
	case asYAML:
		if text, err = json.Marshal(value); err == nil {
			text, err = yaml.JSONToYAML([]byte(terminal.Escaped(string(text))))
		}
	default:
		shown := append(s.warning(s.manager), lines()...)
		return s.put(strings.Join(s.Screen.Theme.Lines(shown), "\n") + "\n")
	}
	if err != nil {
		return fmt.Errorf("encoding the output: %w", err)
	}
	return s.export(string(text))
}

// export writes output for programs. What is wrong with the manager goes to standard error.
func (s *Session) export(text string) error {
	s.warn(s.manager)
	return s.put(text)
}

// warn says on standard error that no manager runs, or that this is unknown.
func (s *Session) warn(m fleet.Manager) {
	if text := m.Trouble(s.Clock.Now()); text != "" {
		fmt.Fprintln(s.ErrOut, "warning: "+text)
	}
}

// warning returns the first lines of every screen if no manager runs, or if that is unknown.
func (s *Session) warning(m fleet.Manager) []string {
	now := s.Clock.Now()
	text := m.Trouble(now)
	if text == "" {
		return nil
	}
	l := s.look(output{})
	lines := l.Hang(l.Theme.Paint(terminal.Bad, "!")+" ", 2, text)
	if m.Down(now) {
		lines = append(lines, "  "+l.Command(status.LookAtManager))
	}
	return append(lines, "")
}

// printTrouble prints trouble that has begun, and the end of trouble.
func (s *Session) printTrouble(before, current string) {
	switch current {
	case before:
	case "":
		s.Screen.Print(s.Screen.Theme.Line("over: " + before))
	default:
		s.Screen.Print(s.Screen.Theme.Line(current))
	}
}

// blocks joins the lines of all policies.
func blocks[T any](policies []T, lines func(T) []string) func() []string {
	return func() []string {
		if len(policies) == 0 {
			return []string{"No RebootPolicy."}
		}
		all := make([][]string, len(policies))
		for i, p := range policies {
			all[i] = lines(p)
		}
		return terminal.Blocks(all...)
	}
}

func (s *Session) put(text string) error {
	if _, err := io.WriteString(s.Out, text); err != nil {
		return fmt.Errorf("writing the output: %w", err)
	}
	return nil
}

// look describes the output: the width of the terminal, or no limit in a pipe.
func (s *Session) look(o output) terminal.Look {
	l := terminal.Look{Theme: s.Screen.Theme, Wide: o.format == asWide, Zone: s.Zone, Flags: s.clusterFlags()}
	if s.Screen.Live {
		l.Width, _ = s.Screen.Size()
	}
	return l
}
