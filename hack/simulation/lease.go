package simulation

import (
	"context"
	"sync"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

const (
	managers = 2
	// leaseDuration, renewDeadline and retryPeriod are those of controllers/options.go.
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second
)

// lease reports who leads. A real one is renewed every two seconds, which is what weeks of virtual time would mostly consist of;
// this one knows when its holder cannot renew it, and runs out as the real one would. Safety does not rest on it.
type lease struct {
	mu      sync.Mutex
	holder  *process.Process
	expires time.Time // zero: the holder renews it
	changed chan struct{}
}

func newLease() *lease { return &lease{changed: make(chan struct{})} }

// acquire waits until the process holds the lease, and reports whether it does.
func (l *lease) acquire(ctx context.Context, p *process.Process, random *process.Random) bool {
	for {
		l.mu.Lock()
		left := time.Until(l.expires)
		if l.holder == nil || !l.expires.IsZero() && left <= 0 {
			if p.Alive() {
				l.holder, l.expires = p, time.Time{}
				l.news()
			}
			l.mu.Unlock()
			return p.Alive()
		}
		if l.expires.IsZero() {
			left = 1 << 62
		}
		changed := l.changed
		l.mu.Unlock()
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-timer.C:
		}
		timer.Stop()
		if !process.Wait(ctx, random.Between(0, retryPeriod)) || !p.Pass() {
			return false
		}
	}
}

// lapse lets the lease run out, if the process holds it: it has died, or cannot renew it.
func (l *lease) lapse(p *process.Process, random *process.Random) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder == p && l.expires.IsZero() {
		l.expires = time.Now().Add(leaseDuration - random.Between(0, retryPeriod))
		l.news()
	}
}

// renew goes on holding the lease, and reports whether that could be: nobody else has it, and it has not run out.
func (l *lease) renew(p *process.Process) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder != p || !l.expires.IsZero() && time.Until(l.expires) <= 0 {
		return false
	}
	l.expires = time.Time{}
	return true
}

func (l *lease) holds(p *process.Process) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holder == p
}

func (l *lease) news() {
	close(l.changed)
	l.changed = make(chan struct{})
}
