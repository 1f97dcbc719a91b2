package protocol

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Listed reports whether the ledger allows an attempt to begin. Its entry for the node must match
// the grant and the Node, and must not be withdrawn. The agent reads the ledger live after it has
// seen the grant, and the manager marks an entry as withdrawn before it looks at the Node. So
// either the manager sees the grant, or the agent sees withdrawnAt.
func Listed(record Record, entry *v1alpha1.LedgerEntry) bool {
	return holds(record, entry) && entry.WithdrawnAt == nil
}

// holds reports whether a ledger's entry for the node matches the record's grant and Node.
func holds(record Record, entry *v1alpha1.LedgerEntry) bool {
	grant := record.Grant
	return grant != nil && entry != nil && entry.Seq == grant.Seq && entry.NodeUID == record.UID
}

// MayCall reports whether the agent may call logind. The attempt must be committed (see Committed),
// and the ledger must still hold its grant. The progress alone is not enough: a machine that was
// restored to an older snapshot runs the boot of a reboot that ended long ago. The entry may be
// withdrawn, because a withdrawal does not stop an attempt that has begun.
func MayCall(record Record, bootID string, entry *v1alpha1.LedgerEntry) bool {
	return Committed(record, bootID) && holds(record, entry)
}

// Committed reports whether the attempt has passed the point of no return in this boot and its
// grant is still in force, according to the Node.
func Committed(record Record, bootID string) bool {
	grant, last := record.Grant, record.Last()
	return last.Phase == PhaseRebooting && !last.HasBooted(bootID) && permits(grant, last)
}

// permits reports whether the grant is Active and is for the same attempt and boot.
func permits(grant *Grant, last Progress) bool {
	return grant != nil && grant.State == GrantActive && grant.Seq == last.Seq && grant.BootID == last.BootID
}

// Start returns the progress that begins an attempt, and whether the attempt may begin. It requires
// an Active grant for the current boot, with a number above every grant that the agent has acted
// on. It also requires a readable progress, because an unreadable one may hide a reboot. The agent
// writes the progress and the cordon in one compare-and-swap.
func Start(record Record, bootID string, schedulable bool, now time.Time) (Progress, bool) {
	grant, last := record.Grant, record.Last()
	if record.ProgressErr != nil || grant == nil || grant.State != GrantActive || grant.Seq <= last.Seq || grant.BootID != bootID {
		return Progress{}, false
	}
	t := metav1.NewTime(now)
	next := Progress{
		Seq:            grant.Seq,
		Phase:          PhaseDraining,
		BootID:         bootID,
		Cordoned:       schedulable, // otherwise the cordon is an administrator's: the end of an attempt undoes the agent's own
		At:             t,
		DrainStartedAt: &t,
	}
	if !last.HasBooted(bootID) {
		next.Failures = last.Failures
	}
	return next, true
}

// Commit returns the progress past the point of no return, and whether the agent may pass it: only
// from Draining, in the boot of the attempt, while its own grant is Active. The agent may call
// logind only after it has written this progress.
func Commit(record Record, bootID string, now time.Time) (Progress, bool) {
	last := record.Last()
	if last.Phase != PhaseDraining || last.BootID != bootID || !permits(record.Grant, last) {
		return Progress{}, false
	}
	next := last
	next.Phase, next.At = PhaseRebooting, metav1.NewTime(now)
	return next, true
}

// Recall returns the progress to write before logind is called again, and whether it may be called.
func Recall(record Record, bootID string, now time.Time) (Progress, bool) {
	next := record.Last()
	next.Recalls, next.CalledAt = next.Recalls+1, &metav1.Time{Time: now}
	return next, Committed(record, bootID)
}

// NoteBoot returns the progress of a host whose uptime proves that it has rebooted although its
// boot ID is the same, and whether that may be written. The agent must not write it while logind
// still takes the host down because of an earlier call.
func NoteBoot(record Record, bootID string) (Progress, bool) {
	next := record.Last()
	next.Rebooted = true
	return next, awaitsBoot(record, bootID)
}

// Retreat returns the progress that ends an attempt past the point of no return without a reboot,
// and whether it may be written. The agent must not write it while logind still takes the host down
// because of an earlier call. The same write undoes the agent's own cordon.
func Retreat(record Record, bootID string, reason v1alpha1.Reason, message string, failed bool, now time.Time) (Progress, bool) {
	next := record.Last()
	next.Phase, next.At, next.Cordoned = PhaseAborted, metav1.NewTime(now), false
	next.Reason, next.Message = reason, message
	if failed {
		next.Failures++
	}
	return next, awaitsBoot(record, bootID)
}

// awaitsBoot reports whether the attempt is past the point of no return in this boot and the
// manager has not ended it.
func awaitsBoot(record Record, bootID string) bool {
	last := record.Last()
	return last.Phase == PhaseRebooting && !last.HasBooted(bootID) && !record.Ended()
}

// Abort returns the progress that ends an attempt without a reboot, and whether it may be written.
// Only an attempt in Draining can be aborted. The same write undoes the agent's own cordon. A
// failed attempt increments the number of failures in a row, and a reboot resets it.
func Abort(
	record Record, bootID string, reason v1alpha1.Reason, message string, failed bool, now time.Time,
) (Progress, bool) {
	last := record.Last()
	if last.Phase != PhaseDraining {
		return Progress{}, false
	}
	next := last
	next.Phase, next.At, next.Cordoned = PhaseAborted, metav1.NewTime(now), false
	next.Reason, next.Message = reason, message
	switch {
	case last.BootID != bootID:
		next.Failures = 0
	case failed:
		next.Failures++
	}
	return next, true
}

// Repair returns the progress that replaces an unreadable one, and whether the agent may write it.
// It ends the attempt, so that the manager gets the slot back. The agent must not write it if it
// may have committed the reboot in the boot of the grant, because the host may be going down.
// Without a grant it uses number 1, so that every later grant has a higher one. The cordon stays,
// because the agent cannot tell who set it.
func Repair(record Record, bootID, message string, committed bool, now time.Time) (Progress, bool) {
	grant := record.Grant
	if grant == nil {
		grant = &Grant{Seq: 1, BootID: bootID}
	}
	if record.ProgressErr == nil || committed && grant.BootID == bootID {
		return Progress{}, false
	}
	next := Progress{
		Seq: grant.Seq, Phase: PhaseAborted, BootID: bootID, Reason: v1alpha1.ReasonRecordUnreadable, Message: message, At: metav1.NewTime(now),
	}
	if grant.State == GrantActive {
		next.Failures = 1
	}
	return next, true
}
