// Package engine merges the reports of update engines: the programs on the host that install an
// operating-system update and then need a reboot. Each engine is a package below this one. Merge
// combines their reports into one answer for the node.
package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// State says whether an engine needs a reboot.
type State string

const (
	// Needed means the next boot uses something that is installed and not running yet.
	Needed State = "Needed"
	// NotNeeded means the engine answered and needs nothing.
	NotNeeded State = "NotNeeded"
	// Unknown means the engine cannot be queried: it is unreachable, or it disappeared. Unknown
	// never counts as a need.
	Unknown State = "Unknown"
	// Absent means the engine is not on this host, has not been seen in this boot, and --engines
	// does not name it. It is ignored.
	Absent State = "Absent"
)

// MaxMessageBytes limits the Message of one Report.
const MaxMessageBytes = 256

// Report is the answer of one engine. Equal reports (==) have the same content, so an unchanged
// report causes no write.
type Report struct {
	// Engine is the name of the engine, for example "update-engine".
	Engine string
	// State reports whether a reboot is needed.
	State State
	// Reason is the reason of Node condition RebootRequired: UpdateStaged, UpToDate or
	// EngineUnreachable.
	Reason v1alpha1.Reason
	// Version is the staged version, or its commit if it has no version. It is empty if it is
	// unknown or nothing is staged.
	Version string
	// Running is the version that Version replaces, in the engine's own words. It changes with
	// every update that took effect, and is set only if there is a need. If it is empty, os-release
	// is compared instead.
	Running string
	// Client is the FleetLock client, such as Zincati, that finalizes the update and reboots the
	// host when the operator permits it. If it is empty, the agent reboots the host.
	Client string
	// Until is the end of a need that only a broadcast announced, in whole seconds of UTC. The
	// engine does not confirm such a need, and its status does not contain it, so the engine gets
	// it back when the agent restarts within the same boot. Until is zero without a need, or if the
	// engine itself needs the reboot.
	Until time.Time
	// Message is a sentence for people that names the engine: valid UTF-8 of at most
	// MaxMessageBytes bytes. It contains no times, counters or connection names, so it changes only
	// if the answer changes.
	Message string
}

// Unreachable returns the report of an engine that cannot be queried.
func Unreachable(name, message string) Report {
	return Report{Engine: name, State: Unknown, Reason: v1alpha1.ReasonEngineUnreachable, Message: Shorten(message)}
}

// UpToDate returns the report of an engine that needs nothing.
func UpToDate(name, message string) Report {
	return Report{Engine: name, State: NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: Shorten(message)}
}

// Staged returns the report of an engine whose update runs after a reboot. version may be empty.
func Staged(name, version, message string) Report {
	return Report{Engine: name, State: Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: version, Message: Shorten(message)}
}

// Shorten cuts a message to MaxMessageBytes.
func Shorten(text string) string { return message.Shorten(MaxMessageBytes, text) }

// maxVersionBytes is several times the length of a real version. The version ends up in the Node.
const maxVersionBytes = 64

// IsVersion reports whether a text looks like a version, such as 4116.0.0+nightly-20241018-2100 or
// 416.94.202406172220-0. Text with spaces is refused: it could pass for a sentence of the agent in
// the Node's condition.
func IsVersion(version string) bool {
	const ends = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return len(version) <= maxVersionBytes && strings.Trim(version, ends+"._+~-") == "" &&
		strings.TrimRight(version, ends) != version
}

// maxMergedBytes limits the message of all engines together.
const maxMergedBytes = 2 * MaxMessageBytes

// Merge combines the reports of all engines into one answer for the node. Any need wins, and the
// message lists every need. If nothing is needed, a single Unknown engine makes the answer Unknown,
// because that engine may have an update. Absent engines are ignored.
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

// join merges reports of one state. The first report provides the names, and all reports contribute
// to the message, including others. A merged need expires only if no engine confirms it.
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

// none returns the report of a host without any engine.
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
