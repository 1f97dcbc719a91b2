package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

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

// Shorten cuts a message to MaxMessageBytes.
func Shorten(text string) string { return message.Shorten(MaxMessageBytes, text) }
