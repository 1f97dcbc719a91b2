package simulation

import (
	"sync"

	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// conditions are how requests fare: foul until the faults end, fair afterwards.
type conditions struct {
	foul, fair process.Conditions

	mu   sync.Mutex
	calm bool
	// outages is how many there are of the API server now.
	outages int
}

// now are the conditions of this instant.
func (c *conditions) now() process.Conditions {
	c.mu.Lock()
	defer c.mu.Unlock()
	current := c.foul
	if c.calm {
		current = c.fair
	}
	current.Down = c.outages > 0
	return current
}

func (c *conditions) isCalm() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calm
}

// calmDown ends the faults.
func (c *conditions) calmDown() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calm = true
}

// cut begins an outage of the API server, which restore ends.
func (c *conditions) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outages++
}

func (c *conditions) restore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outages--
}
