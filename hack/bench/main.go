// The benchmark measures the operator on simulated fleets: `make bench`. Its parts can run alone.
// Each prints its figures next to the goals and, with --docs, puts them into a document. A missed
// goal only changes the exit code with --strict, because figures of a busy machine are not
// failures.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
	"github.com/reboot-operator/reboot-operator/hack/bench/reboots"
	"github.com/reboot-operator/reboot-operator/hack/bench/scale"
	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// exitMissed is the exit code of a run with --strict that missed a goal.
const exitMissed = 2

// options holds the flags of the benchmark.
type options struct {
	only, docs string
	strict     bool
}

func main() {
	os.Exit(run())
}

func run() int {
	var o options
	flags := flag.NewFlagSet("bench", flag.ExitOnError) // libraries register their flags in flag.CommandLine
	flags.StringVar(&o.only, "only", "", "Run only this part: reboots, foreign or scale.")
	flags.StringVar(&o.docs, "docs", "", "Markdown file into which the figures are written, if any.")
	flags.BoolVar(&o.strict, "strict", false, "End with exit code 2 if a goal is missed.")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return fleet.ExitFailed
	}
	missed := 0
	code := fleet.OnTerminal("bench", func(ctx context.Context, screen *terminal.Terminal) (err error) {
		missed, err = measure(ctx, screen, o)
		return err
	})
	if code == 0 && o.strict && missed > 0 {
		return exitMissed
	}
	return code
}

// measure runs the parts one after the other, and counts the missed goals. It shows and writes the
// result of each part before the next one begins.
func measure(ctx context.Context, screen *terminal.Terminal, o options) (missed int, err error) {
	parts := slices.DeleteFunc([]figures.Part{reboots.Part, reboots.Foreign, scale.Part}, func(p figures.Part) bool { return o.only != "" && o.only != p.Name })
	if len(parts) == 0 {
		return 0, fmt.Errorf("unknown part %q: bench --help lists the parts", o.only)
	}
	for _, p := range parts {
		screen.Print("", screen.Theme.Paint(terminal.Strong, p.Name+": "+p.About))
		report, err := p.Run(ctx, screen)
		if err != nil {
			return missed, fmt.Errorf("%s: %w", p.Name, err)
		}
		text := report.Markdown("make bench ARGS=--only=" + p.Name)
		screen.Print("", text)
		missed += len(report.Missed())
		if o.docs == "" {
			continue
		}
		if err := document.Edit(o.docs, p.Name, func(string) string { return text }); err != nil {
			return missed, err
		}
	}
	return missed, nil
}
