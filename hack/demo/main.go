// The demo reboots a simulated cluster from beginning to end, with everything real but the machines: `make demo`.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

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
	// The libraries' own logs report nothing that the demo does not.
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second one kills: the kernel then ends every process of the demo with it
	screen := terminal.Open(os.Stdout, os.Getenv)
	defer screen.Close()
	err = (&demo{options: o, screen: screen, film: film{clock: clock.RealClock{}}}).run(ctx)
	interrupted := ctx.Err() != nil
	if interrupted {
		screen.Print("  everything has been stopped")
	}
	switch {
	case err == nil:
		return 0
	case interrupted:
		return exitInterrupted
	}
	fmt.Fprintf(os.Stderr, "demo: %v\n", err)
	return exitBroken
}
