// The plugin `kubectl reboot` shows the fleet, explains why nodes are not rebooting, and writes the
// requests of administrators.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // for the IANA zones of windows, because not every machine has zone files

	_ "k8s.io/client-go/plugin/pkg/client/auth" // for kubeconfigs with an auth provider

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
