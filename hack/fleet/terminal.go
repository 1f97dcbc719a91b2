package fleet

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// ErrInterrupted is that of a program that has ended before its time, by a signal.
var ErrInterrupted = errors.New("interrupted")

// OnTerminal is what programs such as the demo have in common: it builds the control plane, and runs the rest until that is done, or until
// a signal ends it. The libraries' own logs report nothing that such a program does not.
func OnTerminal(run func(ctx context.Context, screen *terminal.Terminal) error) error {
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
	if ctx.Err() == nil {
		return err
	}
	screen.Print("  everything has been stopped")
	if err != nil {
		return ErrInterrupted
	}
	return nil
}
