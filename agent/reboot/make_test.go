package reboot

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/step"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// now is the instant of every test; begun is when the attempt began.
var (
	now   = time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	begun = now.Add(-5 * time.Minute)
)

const (
	boot, otherBoot = "boot-2", "boot-1"

	active    = protocol.GrantActive
	cancelled = protocol.GrantCancelled

	drainingPhase  = protocol.PhaseDraining
	rebootingPhase = protocol.PhaseRebooting
	abortedPhase   = protocol.PhaseAborted
)

type volumeNameList = []corev1.UniqueVolumeName

func makeGrant(seq int64, state protocol.GrantState, bootID string) *protocol.Grant {
	return &protocol.Grant{Policy: "workers", Seq: seq, BootID: bootID, State: state, At: metav1.NewTime(begun)}
}

func makeProgress(seq int64, phase protocol.Phase, bootID string) *protocol.Progress {
	at := metav1.NewTime(begun)
	return &protocol.Progress{Seq: seq, Phase: phase, BootID: bootID, Cordoned: true, At: at, DrainStartedAt: &at}
}

// makeObservation is a node at rest that needs nothing, changed by each of changes in turn.
func makeObservation(changes ...func(*step.Observation)) step.Observation {
	o := step.Observation{
		Now: now, BootID: boot, Policy: &step.Settings{},
		Inhibitors: step.Inhibitors{Known: true}, Coordinators: step.Coordinators{Known: true},
	}
	o.SetEngines([]engine.Report{{Engine: "update-engine", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: "Nothing is staged."}})
	for _, change := range changes {
		change(&o)
	}
	return o
}

// beingDrained is a node in the middle of attempt 1.
func beingDrained(o *step.Observation) {
	o.Record = protocol.Record{Grant: makeGrant(1, active, boot), Progress: makeProgress(1, drainingPhase, boot)}
	o.Unschedulable = true
}

// goingDown is a node past the point of no return of attempt 1.
func goingDown(o *step.Observation) {
	beingDrained(o)
	o.Record.Progress = makeProgress(1, rebootingPhase, boot)
}

// staged is a host on which a version is staged.
func staged(version string) func(*step.Observation) {
	return func(o *step.Observation) {
		o.SetEngines([]engine.Report{{
			Engine: "update-engine", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: version, Message: "Staged.",
		}})
	}
}
