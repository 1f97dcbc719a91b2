// Package engine is what update engines report: the programs on the host that install an operating-system update and then
// need a reboot. Each engine is a package below this one; Merge makes one answer for the node out of their reports.
package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
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
	// Absent means an engine that --engines does not name is not on this host, and has not been in this boot: it does not count.
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
	// Running is what Version is to replace, as the engine names it: another text after each update that took effect. It
	// comes with a need only. Empty: the engine cannot determine it, and os-release does.
	Running string
	// Until is when the need ends by itself, in whole seconds of UTC. It was received in a broadcast, and the engine itself does not
	// confirm it. Such a need is in no status that could be read again. The engine gets it back when the agent restarts within a boot.
	// Zero: the engine asks for the reboot itself, or there is no need.
	Until time.Time
	// Message is a sentence for people that names the engine: valid UTF-8 of at most MaxMessageBytes bytes. It has no times, counters and
	// connection names, so that it changes only with what it reports.
	Message string
}

// Unreachable is the report of an engine that cannot be asked.
func Unreachable(name, message string) Report {
	return Report{Engine: name, State: Unknown, Reason: v1alpha1.ReasonEngineUnreachable, Message: Shorten(message)}
}

// UpToDate is the report of an engine that needs nothing.
func UpToDate(name, message string) Report {
	return Report{Engine: name, State: NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: Shorten(message)}
}

// Staged is the report of an engine whose update runs after a reboot. version may be empty.
func Staged(name, version, message string) Report {
	return Report{Engine: name, State: Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: version, Message: Shorten(message)}
}

// Shorten cuts a message to MaxMessageBytes.
func Shorten(text string) string { return message.Shorten(MaxMessageBytes, text) }

// maxVersionBytes is several times what any version has; it ends up in the Node.
const maxVersionBytes = 64

// IsVersion accepts what versions are made of, such as 4116.0.0+nightly-20241018-2100 or 416.94.202406172220-0. A text with
// blanks could pass for a sentence of the agent in the Node's condition.
func IsVersion(version string) bool {
	const ends = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return len(version) <= maxVersionBytes && strings.Trim(version, ends+"._+~-") == "" &&
		strings.TrimRight(version, ends) != version
}

// maxMergedBytes bounds the message of all engines together.
const maxMergedBytes = 2 * MaxMessageBytes

// Merge makes one need for the node out of what its engines report; absent ones report nothing. Any need wins, and the message
// lists all of them. Where there is none, one engine that cannot be asked is enough to make it Unknown: it may have one.
func Merge(reports []Report) Report {
	of := func(state State) []Report {
		return slices.DeleteFunc(slices.Clone(reports), func(r Report) bool { return r.State != state })
	}
	needed, unknown, idle := of(Needed), of(Unknown), of(NotNeeded)
	switch {
	case len(needed) > 0:
		return join(needed, unknown)
	case len(unknown) > 0:
		return join(unknown, idle)
	case len(idle) > 0:
		return join(idle, nil)
	}
	return none(of(Absent))
}

// join merges reports of one state as one: the first gives the names, all give the message, and so do others. A need ends by
// itself only if no engine confirms any.
func join(reports, others []Report) Report {
	joined := reports[0]
	for _, r := range reports {
		if r.Until.IsZero() {
			joined.Until = time.Time{}
		}
		if joined.Version == "" {
			joined.Version, joined.Running = r.Version, r.Running
		}
	}
	var messages []string
	for _, r := range slices.Concat(reports, others) {
		if !slices.Contains(messages, r.Message) {
			messages = append(messages, r.Message)
		}
	}
	joined.Message = message.Shorten(maxMergedBytes, strings.Join(messages, " "))
	return joined
}

// none is the report of a host on which no engine was found.
func none(absent []Report) Report {
	names := make([]string, 0, len(absent))
	for _, r := range absent {
		names = append(names, r.Engine)
	}
	return Report{
		State: Unknown, Reason: v1alpha1.ReasonEngineUnreachable,
		Message: fmt.Sprintf("No update engine is found on this host; looked for %s. Mount the host's /run/dbus and /run into the "+
			"agent's pod, or name the host's engine with --engines.", strings.Join(names, ", ")),
	}
}
