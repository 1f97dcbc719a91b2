package worker

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/hack/machine"
)

// hasty is a clock whose timers take a second at most: whoever would try again in half a minute does so then.
type hasty struct{ *machine.Clock }

// NewTimer implements clock.Clock.
func (c hasty) NewTimer(d time.Duration) clock.Timer { return c.Clock.NewTimer(min(d, time.Second)) }

// FileClock is the real clock with an offset that another process writes into a file.
type FileClock struct {
	// Path is the file: nanoseconds, in decimal. It is always there, and whole; a process that cannot read it has no clock.
	Path string
}

// Now implements clock.PassiveClock.
func (c FileClock) Now() time.Time {
	text, err := os.ReadFile(c.Path)
	if err != nil {
		panic(err)
	}
	offset, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		panic(err)
	}
	return time.Now().Add(time.Duration(offset))
}

// Since implements clock.PassiveClock.
func (c FileClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// write sets the offset, in one step for who reads.
func (c FileClock) write(offset time.Duration) error {
	err := os.WriteFile(c.Path+".new", []byte(strconv.FormatInt(int64(offset), 10)), 0o600)
	if err == nil {
		err = os.Rename(c.Path+".new", c.Path)
	}
	if err != nil {
		return fmt.Errorf("writing a clock: %w", err)
	}
	return nil
}
