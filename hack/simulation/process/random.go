package process

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

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

// Between is a time from least up to most. It is exact to the nanosecond, so that hardly anything happens at once.
func (d *Random) Between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return least + time.Duration(d.random.Int64N(int64(most-least)))
}
