// The demo reboots a simulated cluster from beginning to end, with everything real but the machines: `make demo`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// Exit codes: a promise was broken or something failed; the flags cannot work; interrupted.
const (
	exitBroken      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	o, err := parse(args, os.Stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		return exitUsage
	}
	err = fleet.OnTerminal(func(ctx context.Context, screen *terminal.Terminal) error {
		return (&demo{options: o, screen: screen}).run(ctx)
	})
	switch {
	case err == nil:
		return 0
	case errors.Is(err, fleet.ErrInterrupted):
		return exitInterrupted
	}
	fmt.Fprintf(os.Stderr, "demo: %v\n", err)
	return exitBroken
}
