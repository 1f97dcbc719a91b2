// The demo reboots a simulated cluster, in which everything but the machines is real: `make demo`.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// exitUsage is the exit code for wrong flags. A broken promise has the exit code of a failure.
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
