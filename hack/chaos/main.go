// Chaos runs the operator against real API servers under seeded schedules of faults, and lets an
// independent witness judge each run. Start it with `make chaos`; docs/chaos.md describes the
// faults and the properties that must hold.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"
	_ "time/tzdata" // windows name IANA zones

	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/controllers"
	"github.com/reboot-operator/reboot-operator/hack/chaos/worker"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// options holds the values of the flags.
type options struct {
	schedules uint64
	first     uint64
	workers   uint64
	docs      string
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == worker.ManagerCommand {
		if err := manage(os.Args[2:]); err != nil {
			fmt.Fprintf(os.Stderr, "manager: %v\n", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run())
}

func run() int {
	var o options
	flags := flag.NewFlagSet("chaos", flag.ExitOnError) // libraries register their flags in flag.CommandLine
	flags.Uint64Var(&o.schedules, "schedules", 200, "Number of schedules to run, with consecutive seeds. A single one is described before it runs.")
	flags.Uint64Var(&o.first, "first", 0, "First seed.")
	flags.Uint64Var(&o.workers, "workers", 3, "Number of control planes to use in parallel.")
	flags.StringVar(&o.docs, "docs", "", "Markdown file into which the figures are written, if any.")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return 1
	}
	return fleet.OnTerminal("chaos", func(ctx context.Context, screen *terminal.Terminal) error {
		return (&chaos{options: o, screen: screen}).run(ctx)
	})
}

// manage runs the manager like the main package does, but with a shorter Lease and a clock that can
// be set.
func manage(args []string) error {
	flags := flag.NewFlagSet(worker.ManagerCommand, flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "How to reach the API server.")
	clock := flags.String("clock", "", "File with the offset of the clock.")
	if err := flags.Parse(args); err != nil {
		return err
	}
	new(lifecycle.Log).Start(os.Stderr)
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	config.QPS = -1 // the same as in ctrl.GetConfig
	options := controllers.Options{LeaderElect: true, MetricsAddr: "0", ProbeAddr: "0", Namespace: "default"}
	managerOptions, err := options.Manager()
	if err != nil {
		return err
	}
	// A dead leader is replaced within two seconds.
	managerOptions.LeaseDuration, managerOptions.RenewDeadline, managerOptions.RetryPeriod = new(2*time.Second), new(1400*time.Millisecond), new(300*time.Millisecond)
	mgr, err := ctrl.NewManager(config, managerOptions)
	if err != nil {
		return fmt.Errorf("making the manager: %w", err)
	}
	if err := errors.Join(controllers.SetupPolicies(mgr, options, worker.FileClock{Path: *clock}), controllers.SetupAgents(mgr, options)); err != nil {
		return err
	}
	return lifecycle.Run(ctrl.SetupSignalHandler(), mgr)
}
