// Package block holds the reason that a node may not be rebooted now. Every check returns one, or
// nil if it passes.
package block

import (
	"fmt"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Block is the reason that a node may not be rebooted now, with a message that a user can act on.
type Block struct {
	Reason  v1alpha1.Reason
	Message string
	// Until is the time when the block ends by itself, or zero if somebody has to act.
	Until time.Time
	// Endless is true if only a person can end the block although its reason usually ends by itself.
	Endless bool
	// ShortLived is true if the block ends within seconds. Such a block is not written on nodes.
	ShortLived bool
	// StallsAt is the time to report the nodes that use up the limit without a reboot, or zero. After
	// that, Stall describes them.
	StallsAt time.Time
	Stall    *Stall
}

// Stall describes nodes that use up a limit for long without being rebooted. Nothing ends that by
// itself.
type Stall struct {
	// Nodes are the names of the nodes that use up the limit, and Since is the time when they began
	// to.
	Nodes []string
	Since time.Time
	// Waiting is the number of nodes that wait for a slot because of them.
	Waiting int32
	// Message names the nodes and the command to run.
	Message string
}

// New returns a block.
func New(reason v1alpha1.Reason, format string, args ...any) *Block {
	return &Block{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// EndsAt sets when the block ends by itself.
func (b *Block) EndsAt(end time.Time) *Block {
	b.Until = end
	return b
}
