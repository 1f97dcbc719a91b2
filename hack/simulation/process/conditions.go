package process

import (
	"maps"
	"sync"
	"time"
)

// Conditions state how requests and watches fare. Probabilities are for each request, or each delivery of a watch.
type Conditions struct {
	// Latency is the longest that a request takes, there and back; Lag the longest that a watch is behind.
	Latency, Lag time.Duration
	// Down: no request is answered.
	Down bool
	// Refused requests end with an error and have no effect; Lost ones have it, and the answer is lost; Late ones have it
	// after their sender has given up.
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
