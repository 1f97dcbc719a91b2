// Package source defines what all update engines have in common: their options, and how the agent
// makes a running engine look again.
package source

import (
	"context"
	"errors"

	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/agent/engine"
)

// Engine is one update engine on this host.
type Engine interface {
	// Run watches the engine until ctx ends. It calls report with its first finding and then on
	// each change, never from two goroutines at once. If the engine or the bus is absent, Run
	// reports Unknown or Absent; that is not an error.
	Run(ctx context.Context, report func(engine.Report))
}

// Options holds what each engine receives. Engines log to the logger in their context, which names
// the engine.
type Options struct {
	// Clock times the polls, and the pauses before connecting again. Required.
	Clock clock.WithTicker
	// Optional is true if --engines does not name the engine. A host on which the engine was not
	// seen in this boot is then Absent.
	Optional bool
	// Before is the engine's last report if the agent restarted within the same boot, else zero. A
	// service on the bus may not repeat an earlier need, so that need lasts until the service
	// reports otherwise, or until its end.
	Before engine.Report
	// Again makes the engine look once more. Optional.
	Again Again
	// Reachable is called with whether the engine can be queried: once at the start and then on
	// each change. Optional.
	Reachable func(bool)
}

// Changes returns a filter that forwards only changes to report. A need that expires came from a
// broadcast, which any program can send, so it does not prove that the engine is there.
func (o Options) Changes(report func(engine.Report)) engine.Changes {
	reported := o.Before.State != "" && o.Before.Until.IsZero()
	return engine.Changes{Report: report, Reachable: o.Reachable, Optional: o.Optional, Seen: reported}
}

// Again makes a running engine look once more, because a need may be withdrawn without a signal.
// Each value sent on it is a channel with room for one answer. The answer arrives after the engine
// has looked and reported any change; it is false if the engine is there but did not answer.
type Again chan chan<- bool

var errUnanswered = errors.New("it does not answer")

// Look makes the engine look and waits for it. It returns an error if the engine does not answer,
// or if ctx ends first.
func (a Again) Look(ctx context.Context) error {
	done := make(chan bool, 1)
	select {
	case a <- done:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case answered := <-done:
		if !answered {
			return errUnanswered
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
