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

// detached returns the time until which to wait for the volumes of pods that have left, and whether
// to wait. If the host went down earlier, data might be lost, and the pods could not start
// elsewhere. It checks again sooner if a volume may turn out to belong to a pod that stays.
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

// waitedFor returns the volumes in use that do not belong to a pod that stays. It includes volumes
// whose claim cannot be read. It is empty if the drain was not completed, or the policy does not
// wait for volumes.
func waitedFor(o Observation) []corev1.UniqueVolumeName {
	if o.Drain.State != DrainDone || o.Settings().Drain.VolumeDetachTimeoutOrDefault() == 0 {
		return nil
	}
	return volume.Unaccounted(o.VolumesInUse, o.Kept.Names)
}

// drainedAt returns the time when the last pod left. If this process found no pod to evict, an
// earlier process had drained the node, and its condition shows when. So a restart of the agent
// does not restart the wait.
func drainedAt(o Observation) time.Time {
	shown := o.Condition(corev1.NodeDrained)
	of := o.holds(corev1.NodeDrained) && !shown.LastTransitionTime.Time.Before(o.Record.Last().At.Time)
	if of && !o.Drain.Evicted {
		return timing.Earliest(o.Drain.DoneAt, shown.LastTransitionTime.Time)
	}
	return o.Drain.DoneAt
}

// volumesReported returns the message about the volumes that the agent waits for, and the earliest
// time at which it may change, or zero if it is up to date. The message changes at most once a
// minute, however fast the kubelet releases volumes.
func volumesReported(o Observation) (text string, then time.Time) {
	volumes := waitedFor(o)
	if len(volumes) == 0 {
		return "", time.Time{}
	}
	text = fmt.Sprintf("%s The reboot waits at most %s for the kubelet to release %s (status.volumesInUse).",
		podsHaveLeft, o.Settings().Drain.VolumeDetachTimeoutOrDefault(), VolumeNames(volumes))
	if o.Kept.Unread != "" {
		text += " Some may belong to pods that stay: " + o.Kept.Unread + "."
	}
	text = message.Shorten(message.MaxNoteBytes, text)
	if shown := o.Condition(corev1.NodeDrained); shown.Reason == v1alpha1.EventVolumesInUse {
		return spaced(o, shown, lookEvery, text)
	}
	return text, time.Time{}
}

// maxVolumes is the largest number of volumes that a message names.
const maxVolumes = 5

// VolumeNames names a few volumes as the kubelet does.
func VolumeNames(volumes []corev1.UniqueVolumeName) string {
	return message.Names(volumes, maxVolumes)
}

// Kept describes the volumes of pods that stay on the node.
type Kept struct {
	// Names are the names that the kubelet uses.
	Names []corev1.UniqueVolumeName
	// Unread names the claims that could not be looked up and says why, or is empty.
	Unread string
}
