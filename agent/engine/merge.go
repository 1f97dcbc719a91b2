package engine

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Merge makes one need for the node out of what its engines report. Any need wins, and the message tells all of them;
// where nobody needs anything one engine that knows is enough; Unknown is left when none knows, or there is none.
func Merge(reports []Report) Report {
	for _, state := range []State{Needed, NotNeeded, Unknown} {
		same := slices.DeleteFunc(slices.Clone(reports), func(r Report) bool { return r.State != state })
		if len(same) > 0 {
			return join(same)
		}
	}
	return Report{State: Unknown, Reason: v1alpha1.ReasonEngineUnreachable, Message: "No update engine is watched on this host."}
}

// join tells reports of one state as one: the first gives the names, all give the message. A need is latched only if no
// engine confirms any.
func join(reports []Report) Report {
	joined := reports[0]
	messages := make([]string, 0, len(reports))
	for _, r := range reports {
		joined.Latched = joined.Latched && r.Latched
		if joined.Version == "" {
			joined.Version, joined.Running = r.Version, r.Running
		}
		if !slices.Contains(messages, r.Message) {
			messages = append(messages, r.Message)
		}
	}
	joined.Message = Shorten(strings.Join(messages, " "))
	return joined
}

// Shorten cuts a message to MaxMessageBytes of valid UTF-8, at the end of a character.
func Shorten(message string) string {
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= MaxMessageBytes {
		return message
	}
	const ellipsis = "…"
	end := MaxMessageBytes - len(ellipsis)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + ellipsis
}
