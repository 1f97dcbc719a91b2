package machine

import (
	"context"
	"sync"
)

// Gate is passed by a program before each of its actions. It can hold the program, as SIGSTOP does.
type Gate struct {
	mu   sync.Mutex
	held chan struct{} // closed when the program is released, nil if it is not held
}

// Hold stops the program at its next Pass.
func (g *Gate) Hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held == nil {
		g.held = make(chan struct{})
	}
}

// Release lets the program continue.
func (g *Gate) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held != nil {
		close(g.held)
		g.held = nil
	}
}

// Pass blocks while the program is held, and reports whether the program is still alive.
func (g *Gate) Pass(life context.Context) bool {
	for life.Err() == nil {
		g.mu.Lock()
		held := g.held
		g.mu.Unlock()
		if held == nil {
			return true
		}
		select {
		case <-held:
		case <-life.Done():
		}
	}
	return false
}
