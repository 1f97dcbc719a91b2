package reboot

import (
	"fmt"
	"unicode/utf8"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// This file tells an update that reboots do not apply: the boot loader or a health check falls back to the old system, the
// engine installs the update once more and asks again, and so on for ever.

const (
	// maxVainReboots is how many reboots for one update may leave the host as it was. One may be bad luck.
	maxVainReboots = 2
	// maxNameBytes is more than any version has. A longer one names nothing: cut, it might pass for another.
	maxNameBytes = 128
)

// update is what an attempt that began now would be to apply. Where several engines ask, it is the one with the most reboots
// in vain, and else the first. Nil: nobody could tell whether a reboot applied it.
func (o Observation) update() *v1alpha1.Update {
	var update *v1alpha1.Update
	for _, r := range o.Engines {
		if u := o.updateOf(r); update == nil || u != nil && u.VainReboots > update.VainReboots {
			update = u
		}
	}
	return update
}

// updateOf is what one engine asks for. Nil: nothing, or it does not name it, or nothing tells what runs. A need that was
// only overheard may be a test signal.
func (o Observation) updateOf(r engine.Report) *v1alpha1.Update {
	u := &v1alpha1.Update{Version: r.Version, Running: r.Running}
	if u.Running == "" && o.OS != nil {
		u.Running = o.OS.Version
	}
	switch {
	case r.State != engine.Needed || r.Latched || !isName(u.Version) || !isName(u.Running):
		return nil
	case !o.Requested: // an administrator's word starts afresh
		u.VainReboots = vainReboots(o.Record.last(), o.BootID, *u)
	}
	return u
}

// isName refuses what names no version in particular, or would not come back from the record as it is.
func isName(text string) bool {
	return text != "" && text != "0.0.0" && len(text) <= maxNameBytes && utf8.ValidString(text)
}

// vainReboots continues the row of the last attempt: it goes on while the same update is asked for over the same system.
// An attempt that was given up carries it on; one whose boot has ended makes it longer. A reboot by somebody else does
// neither: what it was for is unknown.
func vainReboots(last v1alpha1.Progress, bootID string, u v1alpha1.Update) int32 {
	switch tried := last.Update; {
	case tried == nil || tried.Version != u.Version || tried.Running != u.Running:
		return 0
	case last.Phase == v1alpha1.PhaseRebooting && last.BootID != bootID:
		return tried.VainReboots + 1
	default:
		return tried.VainReboots
	}
}

// inVain is the update for which another reboot would be one too many. Nil: there is none.
func (o Observation) inVain() *v1alpha1.Update {
	if u := o.update(); u != nil && u.VainReboots >= maxVainReboots {
		return u
	}
	return nil
}

// notApplied is the objection to it.
func notApplied(node string, u v1alpha1.Update) v1alpha1.Objection {
	return v1alpha1.Objection{Reason: v1alpha1.ReasonUpdateNotApplied, Message: fmt.Sprintf(
		"The node was rebooted %d times for version %s and still runs %s: the update does not take effect, or rolls back. "+
			"Mend it or hold it back; or, to try it again: kubectl annotate node %s %s=\"why\"",
		u.VainReboots, u.Version, u.Running, node, v1alpha1.AnnotationRebootRequested)}
}
