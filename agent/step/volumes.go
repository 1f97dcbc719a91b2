package step

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/volume"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// detached is until when to wait for the volumes of pods that have left. Otherwise something may still be written to them when the
// host goes, and their pods could not start elsewhere. It looks again sooner where a volume may turn out to be one of a pod that
// stays.
func detached(o Observation) (until time.Time, waits bool) {
	until = drainedAt(o).Add(o.Settings().Drain.VolumeDetachTimeoutOrDefault())
	if len(waitedFor(o)) == 0 || !o.Now.Before(until) {
		return time.Time{}, false
	}
	if o.Kept.Unread != "" {
		until = timing.Earliest(until, o.Now.Add(heldUpRetry))
	}
	return until, true
}

// waitedFor are the volumes in use that no pod which stays accounts for: a volume whose claim cannot be read is waited for,
// too. None where volumes are not waited for at all: the drain was not brought to its end, or the policy requires it.
func waitedFor(o Observation) []corev1.UniqueVolumeName {
	if o.Drain.State != DrainDone || o.Settings().Drain.VolumeDetachTimeoutOrDefault() == 0 {
		return nil
	}
	return volume.Unaccounted(o.VolumesInUse, o.Kept.Names)
}

// drainedAt is when the last pod left. Where this process had none left to evict, an earlier one had drained the node, and its
// condition reports when. So a wait goes on over a restart of the agent, and does not begin anew.
func drainedAt(o Observation) time.Time {
	shown := o.Condition(corev1.NodeDrained)
	of := o.holds(corev1.NodeDrained) && !shown.LastTransitionTime.Time.Before(o.Record.Last().At.Time)
	if of && !o.Drain.Evicted {
		return timing.Earliest(o.Drain.DoneAt, shown.LastTransitionTime.Time)
	}
	return o.Drain.DoneAt
}

// volumesReported is what people read while volumes are waited for. It is written once a minute at most, however quickly the kubelet
// lets go of one after the other. A zero then means that it is up to date.
func volumesReported(o Observation) (text string, then time.Time) {
	volumes := waitedFor(o)
	if len(volumes) == 0 {
		return "", time.Time{}
	}
	text = fmt.Sprintf("%s For at most %s the reboot waits until the kubelet does not use %s any more (status.volumesInUse).",
		left, o.Settings().Drain.VolumeDetachTimeoutOrDefault(), VolumeNames(volumes))
	if o.Kept.Unread != "" {
		text += " Some of these may be of pods that stay: " + o.Kept.Unread + "."
	}
	text = message.Shorten(message.MaxNoteBytes, text)
	if shown := o.Condition(corev1.NodeDrained); shown.Reason == v1alpha1.EventVolumesInUse {
		return spaced(o, shown, lookEvery, text)
	}
	return text, time.Time{}
}

// maxVolumes is how many volumes a message names.
const maxVolumes = 5

// VolumeNames names a few volumes as the kubelet does.
func VolumeNames(volumes []corev1.UniqueVolumeName) string {
	return message.Names(volumes, maxVolumes)
}
