// The demo reboots a simulated cluster from beginning to end, with everything real but the machines: `make demo`.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// exitUsage is the exit code where the flags cannot work. Where a promise was broken it is that of a failure.
const exitUsage = 2

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	o, err := parse(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "demo: %v\n", err)
		return exitUsage
	}
	return fleet.OnTerminal("demo", func(ctx context.Context, screen *terminal.Terminal) error {
		return (&demo{options: o, screen: screen}).run(ctx)
	})
}
