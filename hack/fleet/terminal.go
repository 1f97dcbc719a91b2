package fleet

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// The exit codes of OnTerminal if something failed, and if a signal ended the program early.
const (
	ExitFailed      = 1
	ExitInterrupted = 130
)

// OnTerminal is the common part of programs such as the demo. It builds the control plane, and runs
// the rest until it ends or a signal arrives. It prints an error after the program's name, and
// returns the exit code. Logs of libraries are discarded.
func OnTerminal(name string, run func(ctx context.Context, screen *terminal.Terminal) error) int {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal kills the program, and the kernel then kills all its processes
	screen := terminal.Open(os.Stdout, os.Getenv)
	defer screen.Close()
	err := buildControlPlane(ctx)
	if err == nil {
		err = run(ctx, screen)
	}
	if ctx.Err() != nil {
		screen.Print("  everything has been stopped")
	}
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil:
		return ExitInterrupted
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	return ExitFailed
}
