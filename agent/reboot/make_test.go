package reboot

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
)

// now is the current time in every test. The attempt began at begun.
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

func makeGrant(seq int64, state protocol.GrantState, bootID string) *protocol.Grant {
	return &protocol.Grant{Policy: "workers", Seq: seq, BootID: bootID, State: state, At: metav1.NewTime(begun)}
}

func makeProgress(seq int64, phase protocol.Phase, bootID string) *protocol.Progress {
	t := metav1.NewTime(begun)
	return &protocol.Progress{Seq: seq, Phase: phase, BootID: bootID, Cordoned: true, At: t, DrainStartedAt: &t}
}

// granted is the record of a node with grant 1. inPhase returns that of a node in attempt 1.
func granted() protocol.Record { return protocol.Record{Grant: makeGrant(1, active, boot)} }

func inPhase(phase protocol.Phase) protocol.Record {
	return protocol.Record{Grant: makeGrant(1, active, boot), Progress: makeProgress(1, phase, boot)}
}
