package worker

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/utils/clock"
)

// hasty is the longest that an agent's timers take: whoever would try again in half a minute does so in a second.
const hasty = time.Second

// agentClock is the real clock with an offset that can be changed.
type agentClock struct {
	clock.RealClock
	offset atomic.Int64
}

// Now implements clock.PassiveClock.
func (c *agentClock) Now() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// Since implements clock.PassiveClock.
func (c *agentClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// NewTimer implements clock.Clock.
func (c *agentClock) NewTimer(d time.Duration) clock.Timer {
	return c.RealClock.NewTimer(min(d, hasty))
}

// FileClock is the real clock with an offset that another process writes into a file.
type FileClock struct {
	// Path is the file: nanoseconds, in decimal. While it cannot be read the last offset holds.
	Path string

	last atomic.Int64
}

// Now implements clock.PassiveClock.
func (c *FileClock) Now() time.Time {
	text, err := os.ReadFile(c.Path)
	if err == nil {
		if offset, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil {
			c.last.Store(offset)
		}
	}
	return time.Now().Add(time.Duration(c.last.Load()))
}

// Since implements clock.PassiveClock.
func (c *FileClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// write sets the offset, in one step for who reads.
func (c *FileClock) write(offset time.Duration) error {
	if err := os.WriteFile(c.Path+".new", []byte(strconv.FormatInt(int64(offset), 10)), 0o600); err != nil {
		return fmt.Errorf("writing a clock: %w", err)
	}
	if err := os.Rename(c.Path+".new", c.Path); err != nil {
		return fmt.Errorf("writing a clock: %w", err)
	}
	return nil
}

// clocks are everybody's.
type clocks struct {
	// offset is how far all clocks are from the real one, but for those that have jumped; nanoseconds.
	offset   atomic.Int64
	replicas []*replica
	machines []*machine
}

// write sets everybody's clock, and ends all jumps.
func (c *clocks) write() error {
	offset := time.Duration(c.offset.Load())
	for _, replica := range c.replicas {
		if err := replica.clock.write(offset); err != nil {
			return err
		}
	}
	for _, m := range c.machines {
		m.clock.offset.Store(int64(offset))
		m.wake()
	}
	return nil
}
