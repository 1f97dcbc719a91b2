package process

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"
)

// Dice are a source of chance. They may be thrown from several goroutines, but what is thrown is the same again only where
// one goroutine does.
type Dice struct {
	mu     sync.Mutex
	random *rand.Rand
}

// NewDice makes the dice of one party, which its names tell from all others of the seed.
func NewDice(seed uint64, names ...string) *Dice {
	hash := fnv.New64a()
	for _, name := range names {
		_, _ = hash.Write([]byte(name))
		_, _ = hash.Write([]byte{0})
	}
	return &Dice{random: rand.New(rand.NewPCG(seed, hash.Sum64()))}
}

// Chance is true with a probability.
func (d *Dice) Chance(probability float64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.Float64() < probability
}

// Below is a number from 0 up to n, exclusive; 0 where n is.
func (d *Dice) Below(n int) int {
	if n <= 0 {
		return 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.random.IntN(n)
}

// Between is a time from least up to most. It is exact to the nanosecond, so that hardly anything happens at once.
func (d *Dice) Between(least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return least + time.Duration(d.random.Int64N(int64(most-least)))
}
