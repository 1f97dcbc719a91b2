// Package process is what a program of the operator runs in during a simulation. It has a life that can end or be stopped between any
// two requests, and a client whose requests take time and fail. It has a cache that lags behind, and as much of a controller-runtime
// manager as the controllers need. Everything random comes from random sources with a seed. Only one party draws from each, so that a
// seed replays the same story again.
package process

import (
	"context"
	"errors"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/hack/machine"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
	"github.com/reboot-operator/reboot-operator/internal/pause"
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
	return pause.For(ctx, clock.RealClock{}, d) && ctx.Err() == nil
}

// Conditions state how requests and watches fare. Probabilities are for each request, or each delivery of a watch.
type Conditions struct {
	// Latency is the longest that a request takes, there and back; Lag the longest that a watch is behind.
	Latency, Lag time.Duration
	// Down: no request is answered.
	Down bool
	// Refused requests end with an error and have no effect. Lost ones have it, and the answer is lost. Late ones have it after their
	// sender has given up.
	Refused, Lost, Late float64
	// Outrun writes find that a kubelet's heartbeat came between: they have no effect, and of heartbeats nobody is notified.
	Outrun float64
	// Crash ends the process before or after a request.
	Crash float64
	// Drop breaks a watch, for at most Gap.
	Drop float64
	Gap  time.Duration
}

// Counts are how often each fault was caused.
type Counts struct {
	mu sync.Mutex
	by map[string]int
}

// Add counts one.
func (c *Counts) Add(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]int{}
	}
	c.by[what]++
}

// All are the counts so far.
func (c *Counts) All() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.by)
}

// Random is a seeded random source. Several goroutines may use it, but its numbers are reproducible only where one
// goroutine does.
type Random struct {
	mu     sync.Mutex
	random *rand.Rand
}

// NewRandom makes the random source of one party. Its names make it different from all others of the seed.
func NewRandom(seed uint64, names ...string) *Random {
	hash := fnv.New64a()
	for _, name := range names {
		_, _ = hash.Write([]byte(name))
		_, _ = hash.Write([]byte{0})
	}
	return &Random{random: rand.New(rand.NewPCG(seed, hash.Sum64()))}
}

// Chance is true with a probability.
func (d *Random) Chance(probability float64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.Float64() < probability
}

// Below is a number from 0 up to n, exclusive; 0 where n is.
func (d *Random) Below(n int) int {
	if n <= 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

// Between is a time from least up to most. It is exact to the nanosecond, so that two things almost never happen at once.
func (d *Random) Between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return least + time.Duration(d.random.Int64N(int64(most-least)))
}
