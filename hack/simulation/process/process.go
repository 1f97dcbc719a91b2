// Package process runs a program of the operator in a simulation. The program can be killed or
// paused between any two requests. Its client is slow and fails, its cache lags behind, and its
// manager has the features of controller-runtime that the controllers need. Every random source has
// a seed and is used by one party only, so that a seed always replays the same story.
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
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

// ErrDead is the result of every request of a process that was killed. Nobody acts on it any more.
var ErrDead = errors.New("the process is dead")

// Process is one run of a program. Everything in memory is lost when it ends.
type Process struct {
	// Name is the same for all runs of a program.
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

// Start starts a run.
func Start(ctx context.Context, name string, random func(party string) *Random, store *apiserver.Store, conditions func() Conditions, counts *Counts) *Process {
	ctx, kill := context.WithCancelCause(ctx)
	return &Process{Name: name, Context: ctx, store: store, conditions: conditions, random: random, counts: counts, kill: kill}
}

// Kill ends the process at once. Nothing that it does from now on has an effect.
func (p *Process) Kill() { p.kill(ErrDead) }

// Alive reports whether the process has not been killed.
func (p *Process) Alive() bool { return p.Context.Err() == nil }

// Pass waits while the process is paused, and reports whether it is alive.
func (p *Process) Pass() bool { return p.Gate.Pass(p.Context) }

// Wait waits, and reports whether the context is still alive.
func Wait(ctx context.Context, d time.Duration) bool {
	return lifecycle.Pause(ctx, clock.RealClock{}, d) && ctx.Err() == nil
}

// Conditions describes how requests and watches fail. Probabilities are per request, or per
// delivery of a watch.
type Conditions struct {
	// Latency is the maximum time each way of a request. Lag is the maximum delay of a watch.
	Latency, Lag time.Duration
	// Down means that the API server does not answer.
	Down bool
	// Refused requests fail without an effect. Lost ones have their effect, but the answer is lost.
	// Late ones take effect after the sender has given up.
	Refused, Lost, Late float64
	// Outrun writes conflict with a heartbeat of a kubelet, and have no effect. Heartbeats notify
	// nobody.
	Outrun float64
	// Crash ends the process before or after a request.
	Crash float64
	// Drop breaks a watch, for at most Gap.
	Drop float64
	Gap  time.Duration
}

// Counts counts how often each fault happened.
type Counts struct {
	mu sync.Mutex
	by map[string]int
}

// Add adds one.
func (c *Counts) Add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[string]int{}
	}
	c.by[name]++
}

// All returns the counts so far.
func (c *Counts) All() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.by)
}

// Random is a seeded random source. Several goroutines may use it, but its numbers are only
// reproducible if one does.
type Random struct {
	mu     sync.Mutex
	random *rand.Rand
}

// NewRandom returns the random source of one party, identified by the seed and the names.
func NewRandom(seed uint64, names ...string) *Random {
	hash := fnv.New64a()
	for _, name := range names {
		_, _ = hash.Write([]byte(name))
		_, _ = hash.Write([]byte{0})
	}
	return &Random{random: rand.New(rand.NewPCG(seed, hash.Sum64()))}
}

// Chance returns true with a probability.
func (r *Random) Chance(probability float64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.random.Float64() < probability
}

// Below returns a number from 0 to n-1, or 0 if n is 0.
func (r *Random) Below(n int) int {
	if n <= 0 {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.random.IntN(n)
}

// Between returns a time between least and most, exact to the nanosecond, so that two things almost
// never happen at once.
func (r *Random) Between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return least + time.Duration(r.random.Int64N(int64(most-least)))
}
