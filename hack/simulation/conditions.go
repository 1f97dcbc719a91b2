package simulation

import (
	"sync/atomic"

	"github.com/reboot-operator/reboot-operator/hack/simulation/process"
)

// conditions are how requests fare: foul until the faults end, fair afterwards.
type conditions struct {
	foul, fair process.Conditions

	// calm: the faults have ended.
	calm atomic.Bool
	// outages is how many there are of the API server now.
	outages atomic.Int32
}

// now are the conditions of this instant.
func (c *conditions) now() process.Conditions {
	current := c.foul
	if c.calm.Load() {
		current = c.fair
	}
	current.Down = c.outages.Load() > 0
	return current
}
