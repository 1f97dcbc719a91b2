// Package source is what the update engines have in common: what each is given, and what the agent asks of one that runs.
package source

import (
	"context"
	"errors"

	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine"
)

// Engine is one update engine on this host.
type Engine interface {
	// Run watches the engine until ctx ends. It calls report with the first thing it learns and then on
	// each change only, never from two goroutines at once. An engine or a bus that is absent is a report (Unknown or Absent),
	// not an error.
	Run(ctx context.Context, report func(engine.Report))
}

// Options are what each engine is given. What it logs goes to the logger of its context, which names the engine.
type Options struct {
	// Clock times the polls, and the pauses before connecting again. Required.
	Clock clock.WithTicker
	// Optional reports that --engines does not name the engine: a host on which it has not been in this boot is Absent.
	Optional bool
	// Before is what the engine had reported when the agent was restarted within the same boot. A service on the bus may not repeat
	// a need in it, which lasts until the service reports otherwise, or until its end. Zero: nothing, as after a boot.
	Before engine.Report
	// Again makes the engine look once more. Optional.
	Again Again
	// Reachable is called with whether the engine can be asked, at first and on each change. Optional.
	Reachable func(bool)
}

// Changes passes on to report what changes. A need that ends by itself was a broadcast's, which any program can send: it does not show
// that the engine is there.
func (o Options) Changes(report func(engine.Report)) engine.Changes {
	seen := o.Before.State != "" && o.Before.Until.IsZero()
	return engine.Changes{Report: report, Reachable: o.Reachable, Optional: o.Optional, Seen: seen}
}

// Again makes an engine that runs look once more, without any occasion: a need may be withdrawn without a signal. What is sent on it
// has room for one answer, which comes once the engine has looked and reported what changed. False: the engine is there and did not
// answer.
type Again chan chan<- bool

var errUnanswered = errors.New("it does not answer")

// Look returns once the engine has looked, or with an error where it did not answer, or not in time.
func (a Again) Look(ctx context.Context) error {
	looked := make(chan bool, 1)
	select {
	case a <- looked:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case answered := <-looked:
		if !answered {
			return errUnanswered
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
