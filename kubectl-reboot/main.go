// The plugin `kubectl reboot`: it shows the fleet and why a node is not rebooting, and writes what administrators request.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // windows name IANA zones; not every machine has zone files

	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubeconfigs with a provider

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/command"
)

// version is set by the linker.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command.Run(ctx, version, os.Args); err != nil {
		os.Exit(1)
	}
}
