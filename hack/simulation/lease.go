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
	expires time.Time     // zero: the holder renews it
	lapsed  chan struct{} // closed when the holder does not renew it any more
}

func newLease() *lease { return &lease{lapsed: make(chan struct{})} }

// acquire waits until the process holds the lease, and reports whether it does. While the holder renews it nobody tries.
func (l *lease) acquire(ctx context.Context, p *process.Process, random *process.Random) bool {
	for {
		l.mu.Lock()
		if p.Alive() && (l.holder == nil || l.hasExpired()) {
			l.holder, l.expires = p, time.Time{}
		}
		acquired, renewed, lapsed := l.holder == p, l.expires.IsZero(), l.lapsed
		l.mu.Unlock()
		if acquired {
			return true
		}
		if renewed {
			select {
			case <-ctx.Done():
			case <-lapsed:
			}
		}
		if !process.Wait(ctx, random.Between(0, retryPeriod)) || !p.Pass() {
			return false
		}
	}
}

// hasExpired reports whether anybody may take the lease. The lock is held.
func (l *lease) hasExpired() bool { return !l.expires.IsZero() && time.Until(l.expires) <= 0 }

// lapse lets the lease run out, if the process holds it: it has died, or cannot renew it.
func (l *lease) lapse(p *process.Process, random *process.Random) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder == p && l.expires.IsZero() {
		l.expires = time.Now().Add(leaseDuration - random.Between(0, retryPeriod))
		close(l.lapsed)
		l.lapsed = make(chan struct{})
	}
}

// renew goes on holding the lease, and reports whether that could be: nobody else has it, and it has not run out.
func (l *lease) renew(p *process.Process) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holder != p || l.hasExpired() {
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
