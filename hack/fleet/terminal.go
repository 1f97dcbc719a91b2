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

// Exit codes of OnTerminal: something failed; a signal has ended the program before its time.
const (
	ExitFailed      = 1
	ExitInterrupted = 130
)

// OnTerminal is what programs such as the demo have in common. It builds the control plane, and runs the rest until that is done, or
// until a signal ends it. It prints an error behind the program's name, and returns the exit code. The libraries' own logs report
// nothing that such a program does not.
func OnTerminal(name string, run func(ctx context.Context, screen *terminal.Terminal) error) int {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second one kills: the kernel then ends every process of the program with it
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
