package machine

import (
	"context"
	"sync"
)

// Gate is what a program passes before each thing it does. It can be held there, as SIGSTOP does.
type Gate struct {
	mu   sync.Mutex
	held chan struct{} // closed when it is let go; nil: it is not held
}

// Hold stops the program where it passes next.
func (g *Gate) Hold() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held == nil {
		g.held = make(chan struct{})
	}
}

// Release lets it go on.
func (g *Gate) Release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held != nil {
		close(g.held)
		g.held = nil
	}
}

// Pass waits while the program is held, and reports whether its life lasted.
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
