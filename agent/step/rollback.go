package step

import (
	"fmt"
	"unicode/utf8"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// This file detects needs that a reboot does not end. The boot loader or a health check may fall
// back to the old system, so that the engine requires the same update again. Or the cause of the
// need may return right after each boot, or within hours.

const (
	// maxVainReboots is the number of reboots for one need that may have no effect. The first may
	// be bad luck.
	maxVainReboots = 2
	// maxNameBytes is the longest version. A longer one is ignored, because a shortened one might
	// equal another version.
	maxNameBytes = 128
)

// updateAsked returns the update that an attempt would now apply, and the report that requires it.
// If several engines require one, it prefers the update with the most reboots without effect, then
// one with both versions, then the first. It is nil if no engine requires a reboot.
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
// be a test signal and does not count. If both versions are known, they identify the update.
// Otherwise a need is the same one if it outlived the reboot or comes back soon.
func updateOf(o Observation, r engine.Report) *protocol.Update {
	if r.State != engine.Needed || !r.Until.IsZero() {
		return nil
	}
	running := r.Running
	if running == "" && o.OS != nil {
		running = o.OS.Version
	}
	u := &protocol.Update{Version: nameOf(r.Version), Running: nameOf(running)}
	if !o.asked() && (isNamed(u) || asksAgain(o, r.Engine)) { // an administrator's request resets the count
		u.VainReboots = vainReboots(o.Record.Last(), o.BootID, *u)
	}
	return u
}

// nameOf returns the version, or an empty string if it does not identify one or could not be read
// back from the record unchanged.
func nameOf(text string) string {
	if text == "0.0.0" || len(text) > maxNameBytes || !utf8.ValidString(text) {
		return ""
	}
	return text
}

// isNamed reports whether the versions alone show that a reboot changed nothing.
func isNamed(u *protocol.Update) bool { return u.Version != "" && u.Running != "" }

// vainReboots returns how many reboots in a row did not apply the update, starting from the last
// attempt. The count continues while the same update is required over the same system. An attempt
// that was given up keeps it, and one that rebooted the host increases it. Other reboots do not
// change it, because their purpose is unknown.
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

// inVain reports whether another reboot would exceed maxVainReboots.
func inVain(o Observation) bool {
	u, _ := updateAsked(o)
	return u != nil && u.VainReboots >= maxVainReboots
}

// notApplied returns the reason not to try the update again.
func notApplied(node string, u protocol.Update, from engine.Report) protocol.Blocker {
	problem := fmt.Sprintf("for version %s and still runs %s: the update does not take effect, or rolls back. Repair it or hold it back",
		u.Version, u.Running)
	if !isNamed(&u) {
		problem = fmt.Sprintf("for what %s reports, and soon after each boot it reports that again: %s Remove what causes it",
			from.Engine, message.Shorten(maxNameBytes, from.Message))
	}
	return protocol.Blocker{Reason: v1alpha1.ReasonUpdateNotApplied, Message: fmt.Sprintf(
		"The node was rebooted %d times %s; or, to try it again: kubectl annotate node %s %s=\"why\"",
		u.VainReboots, problem, node, v1alpha1.AnnotationRebootRequested)}
}
