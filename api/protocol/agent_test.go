package protocol

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const (
	active    = GrantActive
	cancelled = GrantCancelled
	finished  = GrantFinished

	drainingPhase  = PhaseDraining
	rebootingPhase = PhaseRebooting
	abortedPhase   = PhaseAborted
)

// now is the current time in every test. The attempt began at begun.
var (
	now   = time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	begun = now.Add(-5 * time.Minute)
)

const boot, otherBoot = "boot-2", "boot-1"

func makeGrant(seq int64, state GrantState, bootID string) *Grant {
	return &Grant{Policy: "workers", Seq: seq, BootID: bootID, State: state, At: metav1.NewTime(begun)}
}

func makeProgress(seq int64, phase Phase, bootID string) *Progress {
	t := metav1.NewTime(begun)
	return &Progress{Seq: seq, Phase: phase, BootID: bootID, Cordoned: true, At: t, DrainStartedAt: &t}
}

// TestListed shows that an attempt may begin only with the entry of the same grant and Node, and
// only while the entry is not withdrawn.
func TestListed(t *testing.T) {
	record := Record{Grant: makeGrant(7, active, boot), UID: "1"}
	instant := metav1.NewTime(now)
	for name, tc := range map[string]struct {
		record Record
		entry  *v1alpha1.LedgerEntry
		want   bool
	}{
		"held":                           {record, &v1alpha1.LedgerEntry{NodeUID: "1", Seq: 7}, true},
		"not held":                       {record, nil, false},
		"held for an older grant":        {record, &v1alpha1.LedgerEntry{NodeUID: "1", Seq: 6}, false},
		"held for a newer grant":         {record, &v1alpha1.LedgerEntry{NodeUID: "1", Seq: 8}, false},
		"held for a Node of its name":    {record, &v1alpha1.LedgerEntry{NodeUID: "2", Seq: 7}, false},
		"withdrawn":                      {record, &v1alpha1.LedgerEntry{NodeUID: "1", Seq: 7, WithdrawnAt: &instant}, false},
		"held, and no grant on the Node": {Record{UID: "1"}, &v1alpha1.LedgerEntry{NodeUID: "1", Seq: 7}, false},
	} {
		if got := Listed(tc.record, tc.entry); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestStart(t *testing.T) {
	instant := metav1.NewTime(now)
	begins := func(seq int64, cordoned bool, failures int32) *Progress {
		return &Progress{
			Seq: seq, Phase: drainingPhase, BootID: boot, Cordoned: cordoned, At: instant, DrainStartedAt: &instant, Failures: failures,
		}
	}
	failed := func(bootID string) *Progress {
		p := makeProgress(1, abortedPhase, bootID)
		p.Cordoned, p.Failures, p.Reason, p.Message = false, 3, v1alpha1.ReasonDrainTimedOut, "too long"
		return p
	}
	cases := map[string]struct {
		record      Record
		schedulable bool
		want        *Progress
	}{
		"no grant":                                     {Record{}, true, nil},
		"a cancelled grant":                            {Record{Grant: makeGrant(1, cancelled, boot)}, true, nil},
		"a finished grant":                             {Record{Grant: makeGrant(1, finished, boot)}, true, nil},
		"a grant for another boot":                     {Record{Grant: makeGrant(1, active, otherBoot)}, true, nil},
		"a grant begins the first attempt":             {Record{Grant: makeGrant(1, active, boot)}, true, begins(1, true, 0)},
		"a progress that cannot be read":               {Record{Grant: makeGrant(1, active, boot), ProgressErr: errors.New("no JSON")}, true, nil},
		"an administrator's cordon is not the agent's": {Record{Grant: makeGrant(1, active, boot)}, false, begins(1, false, 0)},
		"a grant is used once":                         {Record{Grant: makeGrant(1, active, boot), Progress: failed(boot)}, true, nil},
		"an old grant is not used":                     {Record{Grant: makeGrant(1, active, boot), Progress: makeProgress(2, abortedPhase, boot)}, true, nil},
		"a series of failures continues": {
			Record{Grant: makeGrant(2, active, boot), Progress: failed(boot)}, true, begins(2, true, 3),
		},
		"another boot ends the series of failures": {
			Record{Grant: makeGrant(2, active, boot), Progress: failed(otherBoot)}, true, begins(2, true, 0),
		},
		"the cordon after an earlier reboot is an administrator's": {
			Record{Grant: makeGrant(2, active, boot), Progress: makeProgress(1, rebootingPhase, otherBoot)}, false, begins(2, false, 0),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := Start(tc.record, boot, tc.schedulable, now)
			compare(t, tc.want, got, ok)
		})
	}
}

func TestCommit(t *testing.T) {
	committed := makeProgress(1, rebootingPhase, boot)
	committed.At = metav1.NewTime(now)
	cases := map[string]struct {
		record Record
		want   *Progress
	}{
		"nothing begun":                          {Record{Grant: makeGrant(1, active, boot)}, nil},
		"a drain with its grant":                 {Record{Grant: makeGrant(1, active, boot), Progress: makeProgress(1, drainingPhase, boot)}, committed},
		"a drain without a grant":                {Record{Progress: makeProgress(1, drainingPhase, boot)}, nil},
		"a cancelled grant":                      {Record{Grant: makeGrant(1, cancelled, boot), Progress: makeProgress(1, drainingPhase, boot)}, nil},
		"a finished grant":                       {Record{Grant: makeGrant(1, finished, boot), Progress: makeProgress(1, drainingPhase, boot)}, nil},
		"a newer grant":                          {Record{Grant: makeGrant(2, active, boot), Progress: makeProgress(1, drainingPhase, boot)}, nil},
		"an older grant":                         {Record{Grant: makeGrant(1, active, boot), Progress: makeProgress(2, drainingPhase, boot)}, nil},
		"a drain of another boot":                {Record{Grant: makeGrant(1, active, otherBoot), Progress: makeProgress(1, drainingPhase, otherBoot)}, nil},
		"an attempt that is committed already":   {Record{Grant: makeGrant(1, active, boot), Progress: makeProgress(1, rebootingPhase, boot)}, nil},
		"an attempt that was aborted in between": {Record{Grant: makeGrant(1, active, boot), Progress: makeProgress(1, abortedPhase, boot)}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := Commit(tc.record, boot, now)
			compare(t, tc.want, got, ok)
		})
	}
}

func TestAbort(t *testing.T) {
	before := func(phase Phase, bootID string) Record {
		p := makeProgress(1, phase, bootID)
		p.Failures = 2
		return Record{Progress: p}
	}
	aborted := func(bootID string, failures int32) *Progress {
		p := makeProgress(1, abortedPhase, bootID)
		p.At, p.Cordoned, p.Failures = metav1.NewTime(now), false, failures
		p.Reason, p.Message = v1alpha1.ReasonDrainTimedOut, "too long"
		return p
	}
	cases := map[string]struct {
		record Record
		failed bool
		want   *Progress
	}{
		"nothing begun":                                  {Record{}, true, nil},
		"a failure lengthens the series":                 {before(drainingPhase, boot), true, aborted(boot, 3)},
		"a cancellation does not change the series":      {before(drainingPhase, boot), false, aborted(boot, 2)},
		"another boot ends the series":                   {before(drainingPhase, otherBoot), true, aborted(otherBoot, 0)},
		"nothing is aborted past the point of no return": {before(rebootingPhase, boot), true, nil},
		"an aborted attempt is not aborted again":        {before(abortedPhase, boot), true, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := Abort(tc.record, boot, v1alpha1.ReasonDrainTimedOut, "too long", tc.failed, now)
			compare(t, tc.want, got, ok)
		})
	}
}

// compare checks a transition. A nil want means that the transition must not be permitted.
func compare(t *testing.T, want *Progress, got Progress, ok bool) {
	t.Helper()
	var permitted *Progress
	if ok {
		permitted = &got
	}
	if diff := cmp.Diff(want, permitted); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}
