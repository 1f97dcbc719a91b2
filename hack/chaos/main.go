// Chaos runs the operator on real API servers under seeded schedules of faults, and has an independent witness judge each:
// `make chaos`. docs/chaos.md reports what is done and what holds.
package main

import (
	"context"
	"flag"
	"os"
	_ "time/tzdata" // windows name IANA zones

	"github.com/reboot-operator/reboot-operator/hack/chaos/worker"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// options are the flags.
type options struct {
	schedules uint64
	first     uint64
	workers   uint64
	docs      string
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == worker.ManagerCommand {
		os.Exit(manage(os.Args[2:]))
	}
	os.Exit(run())
}

func run() int {
	var o options
	flags := flag.NewFlagSet("chaos", flag.ExitOnError) // libraries have put flags of theirs into the other one
	flags.Uint64Var(&o.schedules, "schedules", 200, "How many schedules to run, of seeds in a row; one alone prints what it is.")
	flags.Uint64Var(&o.first, "first", 0, "The first seed.")
	flags.Uint64Var(&o.workers, "workers", 3, "How many control planes to use side by side.")
	flags.StringVar(&o.docs, "docs", "", "The Markdown file that the figures are put into. Empty: none.")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return 1
	}
	return fleet.OnTerminal("chaos", func(ctx context.Context, screen *terminal.Terminal) error {
		return (&chaos{options: o, screen: screen}).run(ctx)
	})
}
