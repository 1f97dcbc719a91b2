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

// now is the instant of every test; begun is when the attempt began.
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

// cases are observations, by what they show, and what is wanted of each.
type cases[T any] map[string]struct {
	o    Observation
	want T
}

// each compares that with what a function makes of each.
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

// makeObservation is a node at rest that needs nothing, changed by each of changes in turn.
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

// engineReports is what each of the engines reports.
func engineReports(engineReports ...engine.Report) func(*Observation) {
	return func(o *Observation) { o.Engines = engineReports }
}

func granted(seq int64, state protocol.GrantState) func(*Observation) {
	return func(o *Observation) { o.shows(makeGrant(seq, state, boot)) }
}

// shows puts a grant on the Node, which the ledger holds.
func (o *Observation) shows(grant *protocol.Grant) {
	o.Record.Grant, o.Entry = grant, &v1alpha1.LedgerEntry{Node: "n1", NodeUID: o.Record.UID, Seq: grant.Seq}
}

// unlisted is a ledger that does not hold the grant, and withdrawnGrant one that holds it as withdrawn.
func unlisted(o *Observation) { o.Entry = nil }

func withdrawnGrant(o *Observation) { o.Entry.WithdrawnAt = &metav1.Time{Time: now} }

func makeGrant(seq int64, state protocol.GrantState, bootID string) *protocol.Grant {
	return &protocol.Grant{Policy: "workers", Seq: seq, BootID: bootID, State: state, At: metav1.NewTime(begun)}
}

// What may keep a step waiting.
func silent(o *Observation)   { o.Engines = nil }
func noPolicy(o *Observation) { o.Policy = nil }
func unasked(o *Observation)  { o.Inhibitors = Inhibitors{} }
func unseen(o *Observation)   { o.Coordinators = Coordinators{} }
func unanswered(passed time.Duration) func(*Observation) {
	return func(o *Observation) { o.Confirmed, o.UnansweredSince = false, now.Add(-passed) }
}
func paused(o *Observation)             { o.Paused = true }
func unreadableProgress(o *Observation) { o.Record.ProgressErr = errUnreadable }

// readLast is a policy that specifies nothing and was read some time ago, not for this decision.
func readLast(ago time.Duration) func(*Observation) {
	return func(o *Observation) { o.Policy, o.LastPolicy, o.LastPolicyAt = nil, &Settings{}, now.Add(-ago) }
}

// lead is drain.leadTime.
func lead(d time.Duration) func(*Observation) {
	return func(o *Observation) { o.Policy.Drain.LeadTime = &metav1.Duration{Duration: d} }
}

func inPhase(seq int64, phase protocol.Phase) func(*Observation) {
	return func(o *Observation) { o.Record.Progress = makeProgress(seq, phase, boot) }
}

func makeProgress(seq int64, phase protocol.Phase, bootID string) *protocol.Progress {
	at := metav1.NewTime(begun)
	return &protocol.Progress{Seq: seq, Phase: phase, BootID: bootID, Cordoned: true, At: at, DrainStartedAt: &at}
}

// beingDrained is a node in the middle of attempt 1.
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

// with is a condition as the agent writes it.
func with(kind corev1.NodeConditionType, status corev1.ConditionStatus, message string) func(*Observation) {
	reason := map[corev1.NodeConditionType]string{
		corev1.NodeDrainInProgress: v1alpha1.EventDraining, corev1.NodeDrained: v1alpha1.EventDrained,
		corev1.NodeMaintenanceInProgress: string(v1alpha1.ReasonRebooting),
	}[kind]
	return func(o *Observation) {
		o.Conditions = append(o.Conditions, condition(kind, status, reason, message))
	}
}

// recordedIn is what engines have reported in a boot.
func recordedIn(bootID string) func(*Observation) {
	return func(o *Observation) { o.Before = &protocol.Engines{BootID: bootID} }
}

// theirs are the conditions of a maintenance by another program: those of KEP-5683 that the agent writes, too.
func theirs(o *Observation) {
	for _, kind := range []corev1.NodeConditionType{corev1.NodeDrainInProgress, corev1.NodeDrained, corev1.NodeMaintenanceInProgress} {
		c := condition(kind, corev1.ConditionTrue, "NewFirmware", "Theirs.")
		c.LastTransitionTime, c.LastHeartbeatTime = metav1.NewTime(begun), metav1.NewTime(now)
		o.Conditions = append(o.Conditions, c)
	}
}
