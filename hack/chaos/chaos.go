package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
	"github.com/reboot-operator/reboot-operator/hack/chaos/worker"
	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

const (
	// each is the number of schedules between two progress lines.
	each = 20
	// enough is the number of schedules in which every kind of fault gets its turn and strikes in
	// at least atLeast of them.
	enough  = 66
	atLeast = 2
)

// chaos is one run of many schedules.
type chaos struct {
	options options
	screen  *terminal.Terminal

	next atomic.Uint64

	mu     sync.Mutex
	result result
}

func (c *chaos) run(ctx context.Context) error {
	began := time.Now()
	if c.options.schedules == 1 {
		c.screen.Print(schedule.Of(c.options.first).String())
	}
	count := min(c.options.workers, c.options.schedules)
	c.result = newResult(c.options.first)
	err := c.screen.Step(fmt.Sprintf("%d schedules from seed %d on, on %d workers", c.options.schedules, c.options.first, count), func() error {
		var workers errgroup.Group // without a context: a worker that fails does not stop the others
		for range count {
			workers.Go(func() error { return c.worker(ctx) })
		}
		return workers.Wait()
	})
	c.result.took = time.Since(began)
	if c.result.schedules > 0 {
		c.screen.Print("", c.result.text())
		for _, o := range c.result.failed { // repeated at the end of the log, which people read first
			c.screen.Print(violated(o, c.screen.Theme)...)
		}
	}
	floor := 0
	if c.options.schedules >= enough {
		floor = atLeast
	}
	if c.options.docs != "" && err == nil {
		err = document.Edit(c.options.docs, "chaos", func(string) string { return c.result.text() })
	}
	return errors.Join(err, c.result.failure(floor))
}

// worker runs schedules on a control plane until none are left.
func (c *chaos) worker(ctx context.Context) error {
	l, err := worker.Start(ctx)
	if err != nil {
		return err
	}
	defer l.Stop()
	for n := c.next.Add(1); n <= c.options.schedules && ctx.Err() == nil; n = c.next.Add(1) {
		seed := c.options.first + n - 1
		o, err := l.Run(schedule.Of(seed))
		if err != nil {
			return fmt.Errorf("seed %d: %w\nlogs are in %s", seed, err, l.KeepLogs())
		}
		if len(o.Violations) > 0 {
			c.screen.Print("  logs are in " + l.KeepLogs())
		}
		c.add(o)
	}
	return ctx.Err()
}

func (c *chaos) add(o worker.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.result.add(o)
	if len(o.Violations) > 0 {
		c.screen.Print(violated(o, c.screen.Theme)...)
	}
	if c.result.schedules%each == 0 {
		c.screen.Print(fmt.Sprintf("  %4d of %d schedules, %d reboots, %d violations", c.result.schedules, c.options.schedules, c.result.reboots, c.result.violations))
	}
}
