package step

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// now is the current time in every test. The attempt began at begun.
var (
	now   = time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	begun = now.Add(-5 * time.Minute)
)

const boot, otherBoot = "boot-2", "boot-1"

const (
	active    = protocol.GrantActive
	cancelled = protocol.GrantCancelled
	finished  = protocol.GrantFinished

	drainingPhase  = protocol.PhaseDraining
	rebootingPhase = protocol.PhaseRebooting
	abortedPhase   = protocol.PhaseAborted
)

// cases maps the name of each case to an observation and the expected result.
type cases[T any] map[string]struct {
	o    Observation
	want T
}

// each runs a subtest for each case that compares the result of a function with the expected one.
func (all cases[T]) each(t *testing.T, of func(Observation) T) {
	t.Helper()
	for name, tc := range all {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, of(tc.o)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// makeObservation returns a node at rest that needs nothing, after applying the changes in order.
func makeObservation(changes ...func(*Observation)) Observation {
	o := Observation{
		Now: now, BootID: boot, Policy: &Settings{}, StartLook: Look{At: now}, Confirmed: true,
		Inhibitors:   Inhibitors{Known: true},
		Coordinators: Coordinators{Known: true},
	}
	engineReports(engine.Report{
		Engine: "update-engine", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: "Nothing is staged.",
	})(&o)
	for _, change := range changes {
		change(&o)
	}
	return o
}

// engineReports sets the reports of the engines.
func engineReports(engineReports ...engine.Report) func(*Observation) {
	return func(o *Observation) { o.Engines = engineReports }
}

// asking is a FleetLock client that asked for a reboot in a boot, some time ago.
func asking(bootID string, ago time.Duration) func(*Observation) {
	return func(o *Observation) {
		o.FleetLock = &protocol.FleetLockRequest{BootID: bootID, ID: "n1", At: metav1.NewTime(o.Now.Add(-ago))}
		o.Engines = WithFleetLock(o.Engines, *o)
	}
}

func granted(seq int64, state protocol.GrantState) func(*Observation) {
	return func(o *Observation) { o.shows(makeGrant(seq, state, boot)) }
}

// shows puts a grant on the Node and into the ledger.
func (o *Observation) shows(grant *protocol.Grant) {
	o.Record.Grant, o.Entry = grant, &v1alpha1.LedgerEntry{Node: "n1", NodeUID: o.Record.UID, Seq: grant.Seq}
}

// unlisted removes the grant from the ledger. withdrawnGrant marks it as withdrawn.
func unlisted(o *Observation) { o.Entry = nil }

func withdrawnGrant(o *Observation) { o.Entry.WithdrawnAt = &metav1.Time{Time: now} }

func makeGrant(seq int64, state protocol.GrantState, bootID string) *protocol.Grant {
	return &protocol.Grant{Policy: "workers", Seq: seq, BootID: bootID, State: state, At: metav1.NewTime(begun)}
}

// Facts that may be missing for a step.
func silent(o *Observation)   { o.Engines = nil }
func noPolicy(o *Observation) { o.Policy = nil }
func unasked(o *Observation)  { o.Inhibitors = Inhibitors{} }
func unseen(o *Observation)   { o.Coordinators = Coordinators{} }
func unanswered(passed time.Duration) func(*Observation) {
	return func(o *Observation) { o.Confirmed, o.UnansweredSince = false, now.Add(-passed) }
}
func paused(o *Observation)             { o.Paused = true }
func unreadableProgress(o *Observation) { o.Record.ProgressErr = errUnreadable }

// readLast sets a default policy that was read some time ago, not for this decision.
func readLast(ago time.Duration) func(*Observation) {
	return func(o *Observation) { o.Policy, o.LastPolicy, o.LastPolicyAt = nil, &Settings{}, now.Add(-ago) }
}

// lead sets drain.leadTime.
func lead(d time.Duration) func(*Observation) {
	return func(o *Observation) { o.Policy.Drain.LeadTime = &v1alpha1.Duration{Duration: d} }
}

func inPhase(seq int64, phase protocol.Phase) func(*Observation) {
	return func(o *Observation) { o.Record.Progress = makeProgress(seq, phase, boot) }
}

func makeProgress(seq int64, phase protocol.Phase, bootID string) *protocol.Progress {
	t := metav1.NewTime(begun)
	return &protocol.Progress{Seq: seq, Phase: phase, BootID: bootID, Cordoned: true, At: t, DrainStartedAt: &t}
}

// beingDrained is a node that drains in attempt 1.
func beingDrained(o *Observation) {
	granted(1, protocol.GrantActive)(o)
	inPhase(1, protocol.PhaseDraining)(o)
	o.Unschedulable = true
}

// goingDown is a node past the point of no return of attempt 1.
func goingDown(o *Observation) {
	beingDrained(o)
	inPhase(1, protocol.PhaseRebooting)(o)
	o.Began, o.SeenAt = true, o.Now
}

// rebootedBefore is a node after the reboot of attempt 1.
func rebootedBefore(o *Observation) {
	goingDown(o)
	o.Record.Progress.BootID, o.Record.Grant.BootID = otherBoot, otherBoot
}

func drainIs(drain Drain) func(*Observation) {
	return func(o *Observation) { o.Drain = drain }
}

// with adds a condition as the agent writes it.
func with(kind corev1.NodeConditionType, status corev1.ConditionStatus, message string) func(*Observation) {
	reason := map[corev1.NodeConditionType]string{
		corev1.NodeDrainInProgress: v1alpha1.EventDraining, corev1.NodeDrained: v1alpha1.EventDrained,
		corev1.NodeMaintenanceInProgress: string(v1alpha1.ReasonRebooting),
	}[kind]
	return func(o *Observation) {
		o.Conditions = append(o.Conditions, condition(kind, status, reason, message))
	}
}

// recordedIn sets the boot of the recorded reports of the engines.
func recordedIn(bootID string) func(*Observation) {
	return func(o *Observation) { o.Before = &protocol.Engines{BootID: bootID} }
}

// theirs adds the conditions of a maintenance by another program. They have the same KEP-5683 types
// as the agent's.
func theirs(o *Observation) {
	for _, kind := range []corev1.NodeConditionType{corev1.NodeDrainInProgress, corev1.NodeDrained, corev1.NodeMaintenanceInProgress} {
		c := condition(kind, corev1.ConditionTrue, "NewFirmware", "Theirs.")
		c.LastTransitionTime, c.LastHeartbeatTime = metav1.NewTime(begun), metav1.NewTime(now)
		o.Conditions = append(o.Conditions, c)
	}
}
