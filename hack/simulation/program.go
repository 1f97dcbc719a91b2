package simulation

import (
	"context"
	"sync"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// program lives again whenever its process ends.
type program struct {
	world  *World
	name   string
	random *process.Random

	mu      sync.Mutex
	process *process.Process
}

// run lets the program live, one life after another, until ctx ends.
func (p *program) run(ctx context.Context, name string, live func(*process.Process)) {
	for ctx.Err() == nil {
		life := p.world.start(ctx, name)
		p.mu.Lock()
		p.process = life
		p.mu.Unlock()
		live(life)
		process.Wait(ctx, p.random.Between(time.Second, time.Minute))
	}
}

// now is the process that runs. Nil: none does.
func (p *program) now() *process.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.process == nil || !p.process.Alive() {
		return nil
	}
	return p.process
}

// kill ends the process. False: there is none.
func (p *program) kill() bool {
	life := p.now()
	if life == nil {
		return false
	}
	life.Kill()
	return true
}
