package step

import (
	"fmt"
	"unicode/utf8"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// This file detects needs that reboots do not end. The boot loader or a health check falls back to the old system, and the engine
// asks for the same update again. Or what asks for the reboot is there again right after each boot, or within hours.

const (
	// maxVainReboots is how many reboots for one need may leave it as it was. One may be bad luck.
	maxVainReboots = 2
	// maxNameBytes is more than any version has. A longer one names nothing: cut, it might pass for another.
	maxNameBytes = 128
)

// updateAsked is what an attempt that began now would be to apply, and the report that asks for it. Where several engines ask, it
// is the one with the most reboots that changed nothing, else one with both versions, else the first. Nil: no engine asks.
func updateAsked(o Observation) (*protocol.Update, engine.Report) {
	var update *protocol.Update
	var from engine.Report
	for _, r := range o.Engines {
		u := updateOf(o, r)
		if u == nil {
			continue
		}
		if update == nil || u.VainReboots > update.VainReboots || u.VainReboots == update.VainReboots && isNamed(u) && !isNamed(update) {
			update, from = u, r
		}
	}
	return update, from
}

// updateOf returns the update that one engine requires, or nil. A need that was only broadcast may
// be a test signal. If both versions are known, they identify the update. Otherwise a need is the
// same one if it outlived the reboot or comes back soon.
func updateOf(o Observation, r engine.Report) *protocol.Update {
	if r.State != engine.Needed || !r.Until.IsZero() {
		return nil
	}
	running := r.Running
	if running == "" && o.OS != nil {
		running = o.OS.Version
	}
	u := &protocol.Update{Version: nameOf(r.Version), Running: nameOf(running)}
	if !o.asked() && (isNamed(u) || asksAgain(o, r.Engine)) { // a request starts afresh
		u.VainReboots = vainReboots(o.Record.Last(), o.BootID, *u)
	}
	return u
}

// nameOf is empty for what names no version in particular, or would not come back from the record as it is.
func nameOf(text string) string {
	if text == "0.0.0" || len(text) > maxNameBytes || !utf8.ValidString(text) {
		return ""
	}
	return text
}

// isNamed reports whether the versions alone report that a reboot changed nothing.
func isNamed(u *protocol.Update) bool { return u.Version != "" && u.Running != "" }

// vainReboots continues the row of the last attempt: it goes on while the same update is asked for over the same system.
// An attempt that was given up carries it on; one whose boot has ended makes it longer. A reboot of another origin does
// neither: what it was for is unknown.
func vainReboots(last protocol.Progress, bootID string, u protocol.Update) int32 {
	switch tried := last.Update; {
	case tried == nil || tried.Version != u.Version || tried.Running != u.Running:
		return 0
	case last.Phase == protocol.PhaseRebooting && last.HasBooted(bootID):
		return tried.VainReboots + 1
	default:
		return tried.VainReboots
	}
}

// inVain reports whether another reboot would be one too many.
func inVain(o Observation) bool {
	u, _ := updateAsked(o)
	return u != nil && u.VainReboots >= maxVainReboots
}

// notApplied is the reason not to try it again.
func notApplied(node string, u protocol.Update, from engine.Report) protocol.Blocker {
	what := fmt.Sprintf("for version %s and still runs %s: the update does not take effect, or rolls back. Repair it or hold it back",
		u.Version, u.Running)
	if !isNamed(&u) {
		what = fmt.Sprintf("for what %s reports, and soon after each boot it reports that again: %s Remove what causes it",
			from.Engine, message.Shorten(maxNameBytes, from.Message))
	}
	return protocol.Blocker{Reason: v1alpha1.ReasonUpdateNotApplied, Message: fmt.Sprintf(
		"The node was rebooted %d times %s; or, to try it again: kubectl annotate node %s %s=\"why\"",
		u.VainReboots, what, node, v1alpha1.AnnotationRebootRequested)}
}
