package process

import (
	"context"
	"errors"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/machine"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
)

// ErrDead is what every request of a process answers that has been killed. Nobody acts on it any more.
var ErrDead = errors.New("the process is dead")

// Process is one life of a program. What it has in memory goes with it.
type Process struct {
	// Name is the same for all lives of a program.
	Name string
	// Context ends with the process.
	Context context.Context //nolint:containedctx // it is the life itself

	store      *apiserver.Store
	conditions func() Conditions
	random     func(party string) *Random
	counts     *Counts
	kill       context.CancelCauseFunc

	machine.Gate // before each request, answer and event
}

// Start begins a life. Lives of one name are distinguished by their number.
func Start(ctx context.Context, name string, random func(party string) *Random, store *apiserver.Store, conditions func() Conditions, counts *Counts) *Process {
	ctx, kill := context.WithCancelCause(ctx)
	return &Process{Name: name, Context: ctx, store: store, conditions: conditions, random: random, counts: counts, kill: kill}
}

// Kill ends the process where it is. Nothing that it does from now on has an effect.
func (p *Process) Kill() { p.kill(ErrDead) }

// Alive reports whether it has not been killed.
func (p *Process) Alive() bool { return p.Context.Err() == nil }

// Pass waits while the process is stopped, and reports whether it lives.
func (p *Process) Pass() bool { return p.Gate.Pass(p.Context) }

// Wait lets time pass, and reports whether the context lasted.
func Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
