// Package engine is what the agent knows about update engines: whatever on the host installs an operating-system update and
// then needs a reboot. Each engine is a package below this one; Merge makes one answer for the node out of theirs.
package engine

import (
	"context"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// State is what an engine reports about a reboot.
type State string

const (
	// Needed means the next boot uses something that is installed and not running yet.
	Needed State = "Needed"
	// NotNeeded means the engine was asked and needs nothing.
	NotNeeded State = "NotNeeded"
	// Unknown means the engine cannot be asked: it is unreachable, or gone since it was last seen. It is never a need.
	Unknown State = "Unknown"
	// Absent means an engine that nobody named is not on this host, and has not been in this boot: it does not count.
	Absent State = "Absent"
)

// MaxMessageBytes is the most bytes the Message of one engine's Report holds.
const MaxMessageBytes = 256

// Report is what one engine reports. Two equal reports (==) have the same content, so an unchanged report causes no write.
type Report struct {
	// Engine is the name of the engine, for example "update-engine".
	Engine string
	// State reports whether a reboot is needed.
	State State
	// Reason is the reason of Node condition RebootRequired: UpdateStaged, UpToDate or EngineUnreachable.
	Reason v1alpha1.Reason
	// Version is the version staged, or the commit of one that has none. Empty: unknown, or none is staged.
	Version string
	// Running is what Version is to replace, in the engine's own words: another text after each update that took effect. It
	// comes with a need only. Empty: the engine cannot determine, and os-release does.
	Running string
	// Until is when the need ends by itself, in whole seconds of UTC: it was received in a broadcast, and the engine itself does
	// not confirm it. Such a need is in no status that could be read again: it has to be handed back to the engine when the
	// agent restarts within a boot. Zero: the engine asks for the reboot itself, or there is no need.
	Until time.Time
	// Message is a sentence for people that names the engine: valid UTF-8 of at most MaxMessageBytes bytes, free of times,
	// counters and connection names, so that it changes only when what it reports does.
	Message string
}

// Engine is one update engine on this host.
type Engine interface {
	// Name is the engine's name in flags, reports and metrics.
	Name() string
	// Run watches the engine until ctx ends and calls report with the first thing it learns and then on each change only,
	// never from two goroutines at once. An engine or a bus that is absent is a report (Unknown or Absent), not an error.
	Run(ctx context.Context, report func(Report)) error
}

// Again makes an engine that runs look once more, without any occasion. What is sent on it is closed once the engine has
// looked and has reported what changed: a need may be withdrawn without a signal.
type Again chan chan<- struct{}

// Look returns once the engine has looked, or with ctx's error where it did not in time.
func (a Again) Look(ctx context.Context) error {
	looked := make(chan struct{})
	select {
	case a <- looked:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-looked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
