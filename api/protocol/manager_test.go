package protocol

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// answers holds the results of the guards for a record and entry 5 of this boot.
type answers struct {
	Publish, Cancel, Finish, Releasable, Outstanding, Finished bool
	Next                                                       int64
}

// TestRecord shows what the manager may do next for each record. TestProtocol_KeepsTheLimit shows
// that it is safe.
func TestRecord(t *testing.T) {
	lost := errors.New("no JSON")
	cases := map[string]struct {
		record Record
		bootID string
		want   answers
	}{
		"nothing yet":                          {Record{}, boot, answers{Publish: true, Cancel: true, Next: 1}},
		"hooks run for the entry":              {Record{Hooks: &HookPhase{Seq: 5}}, boot, answers{Publish: true, Cancel: true, Next: 6}},
		"an unreadable progress, and no grant": {Record{ProgressErr: lost}, boot, answers{Publish: true, Cancel: true, Next: 1}},
		"published":                            {Record{Grant: makeGrant(5, active, boot)}, boot, answers{Cancel: true, Outstanding: true, Next: 6}},
		"draining":                             {Record{Grant: makeGrant(5, active, boot), Progress: makeProgress(5, drainingPhase, boot)}, boot, answers{Cancel: true, Outstanding: true, Next: 6}},
		"rebooting":                            {Record{Grant: makeGrant(5, active, boot), Progress: makeProgress(5, rebootingPhase, boot)}, boot, answers{Outstanding: true, Next: 6}},
		"up again":                             {Record{Grant: makeGrant(5, active, boot), Progress: makeProgress(5, rebootingPhase, boot)}, "boot-3", answers{Finish: true, Outstanding: true, Next: 6}},
		"up again, by a kubelet without a boot ID":      {Record{Grant: makeGrant(5, active, boot), Progress: makeProgress(5, rebootingPhase, boot)}, "", answers{Outstanding: true, Next: 6}},
		"draining, and up again":                        {Record{Grant: makeGrant(5, active, boot), Progress: makeProgress(5, drainingPhase, boot)}, "boot-3", answers{Cancel: true, Outstanding: true, Next: 6}},
		"finished":                                      {Record{Grant: makeGrant(5, finished, boot), Progress: makeProgress(5, rebootingPhase, boot)}, "boot-3", answers{Finished: true, Releasable: true, Next: 6}},
		"aborted":                                       {Record{Grant: makeGrant(5, active, boot), Progress: makeProgress(5, abortedPhase, boot)}, boot, answers{Cancel: true, Releasable: true, Next: 6}},
		"aborted, and the grant is gone":                {Record{Progress: makeProgress(5, abortedPhase, boot)}, boot, answers{Publish: true, Cancel: true, Releasable: true, Next: 6}},
		"cancelled before the start":                    {Record{Grant: makeGrant(5, cancelled, boot)}, boot, answers{Releasable: true, Next: 6}},
		"cancelled, after an earlier attempt":           {Record{Grant: makeGrant(5, cancelled, boot), Progress: makeProgress(4, abortedPhase, boot)}, boot, answers{Releasable: true, Next: 6}},
		"cancelled, and the agent still drains":         {Record{Grant: makeGrant(5, cancelled, boot), Progress: makeProgress(5, drainingPhase, boot)}, boot, answers{Outstanding: true, Next: 6}},
		"cancelled, and the agent gave up":              {Record{Grant: makeGrant(5, cancelled, boot), Progress: makeProgress(5, abortedPhase, boot)}, boot, answers{Releasable: true, Next: 6}},
		"cancelled by hand while it reboots":            {Record{Grant: makeGrant(5, cancelled, boot), Progress: makeProgress(5, rebootingPhase, boot)}, boot, answers{Outstanding: true, Next: 6}},
		"cancelled by hand, and up again":               {Record{Grant: makeGrant(5, cancelled, boot), Progress: makeProgress(5, rebootingPhase, boot)}, "boot-3", answers{Finish: true, Outstanding: true, Next: 6}},
		"published, and the progress is unreadable":     {Record{Grant: makeGrant(5, active, boot), ProgressErr: lost}, boot, answers{Outstanding: true, Next: 6}},
		"cancelled, and the progress is unreadable":     {Record{Grant: makeGrant(5, cancelled, boot), ProgressErr: lost}, boot, answers{Next: 6}},
		"finished, and the progress is unreadable":      {Record{Grant: makeGrant(5, finished, boot), ProgressErr: lost}, boot, answers{Finished: true, Next: 6}},
		"an older grant is finished":                    {Record{Grant: makeGrant(4, finished, boot), Progress: makeProgress(4, rebootingPhase, boot)}, boot, answers{Publish: true, Cancel: true, Next: 5}},
		"an older grant was cancelled":                  {Record{Grant: makeGrant(4, cancelled, boot), Progress: makeProgress(3, rebootingPhase, boot)}, boot, answers{Publish: true, Cancel: true, Next: 5}},
		"an older grant was given up":                   {Record{Grant: makeGrant(4, active, boot), Progress: makeProgress(4, abortedPhase, boot)}, boot, answers{Publish: true, Cancel: true, Next: 5}},
		"an older grant is published":                   {Record{Grant: makeGrant(4, active, boot)}, boot, answers{Outstanding: true, Next: 5}},
		"a drain under an older grant":                  {Record{Grant: makeGrant(4, active, boot), Progress: makeProgress(4, drainingPhase, boot)}, boot, answers{Outstanding: true, Next: 5}},
		"a drain under an older, cancelled grant":       {Record{Grant: makeGrant(4, cancelled, boot), Progress: makeProgress(4, drainingPhase, boot)}, boot, answers{Outstanding: true, Next: 5}},
		"a newer grant is published":                    {Record{Grant: makeGrant(6, active, boot)}, boot, answers{Releasable: true, Outstanding: true, Next: 7}},
		"a newer grant is published after this reboot":  {Record{Grant: makeGrant(6, active, boot), Progress: makeProgress(5, rebootingPhase, boot)}, boot, answers{Releasable: true, Outstanding: true, Next: 7}},
		"a newer grant is published in this very drain": {Record{Grant: makeGrant(6, active, boot), Progress: makeProgress(5, drainingPhase, boot)}, boot, answers{Outstanding: true, Next: 7}},
		"this grant is gone while it drains":            {Record{Progress: makeProgress(5, drainingPhase, boot)}, boot, answers{Publish: true, Cancel: true, Outstanding: true, Next: 6}},
		"this grant is gone while it reboots":           {Record{Progress: makeProgress(5, rebootingPhase, boot)}, boot, answers{Publish: true, Cancel: true, Outstanding: true, Next: 6}},
		"an older grant came back while it reboots":     {Record{Grant: makeGrant(4, active, boot), Progress: makeProgress(5, rebootingPhase, boot)}, boot, answers{Publish: true, Cancel: true, Outstanding: true, Next: 6}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := v1alpha1.LedgerEntry{Seq: 5, BootID: boot}
			var got answers
			_, got.Publish = Publish(tc.record, e, "workers", now)
			_, got.Cancel = Cancel(tc.record, e, "workers", "", "", now)
			_, got.Finish = Finish(tc.record, e, "workers", tc.bootID, now)
			got.Releasable, got.Outstanding, got.Next, got.Finished = Releasable(tc.record, e), tc.record.Outstanding(), nextSeq(0, tc.record), tc.record.Finished(e.Seq)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRecord_Writes shows what a written grant contains: number, boot, policy, state, time, and the
// reason if it is cancelled.
func TestRecord_Writes(t *testing.T) {
	e := v1alpha1.LedgerEntry{Seq: 5, BootID: boot}
	published, _ := Publish(Record{}, e, "workers", now)
	cancel, _ := Cancel(Record{}, e, "workers", v1alpha1.ReasonNodePaused, "a person looks", now)
	finish, _ := Finish(Record{}, e, "workers", "", now)
	for state, got := range map[GrantState]Grant{active: published, cancelled: cancel, finished: finish} {
		want := Grant{Policy: "workers", Seq: 5, BootID: boot, State: state, At: metav1.NewTime(now)}
		if state == cancelled {
			want.Reason, want.Message = v1alpha1.ReasonNodePaused, "a person looks"
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// A node that moves between two policies may get the same number from both. Then the first grant
// counts (behaviour 61).
func TestRecord_TwoPolicies(t *testing.T) {
	r, e := Record{Grant: makeGrant(5, active, boot)}, v1alpha1.LedgerEntry{Seq: 5, BootID: boot}
	for policy, want := range map[string]bool{"workers": false, "second": true} {
		if got := Overtaken(r, e, policy); got != want {
			t.Errorf("overtaken, for %s: %t", policy, got)
		}
	}
	if Overtaken(r, v1alpha1.LedgerEntry{Seq: 6, BootID: boot}, "second") || Overtaken(Record{}, e, "second") {
		t.Error("overtaken by another number, or by nothing")
	}
	if got, _ := Cancel(r, e, "second", "", "", now); got.Policy != "workers" {
		t.Errorf("cancelled in the name of %s, whose ledger would not know it any more", got.Policy)
	}
	if _, ok := Publish(r, e, "second", now); ok {
		t.Error("a second grant")
	}
}

// The ledger records when a reboot passed the point of no return, and forgets it if the node shows
// a drain again.
func TestNoteReboot(t *testing.T) {
	noted := new(metav1.NewTime(now.Add(-time.Minute)))
	cases := map[string]struct {
		record      Record
		noted, want *metav1.Time
	}{
		"rebooting":                                 {Record{Progress: makeProgress(5, rebootingPhase, boot)}, nil, new(metav1.NewTime(now))},
		"rebooting since before":                    {Record{Progress: makeProgress(5, rebootingPhase, boot)}, noted, noted},
		"rebooting under an older number":           {Record{Progress: makeProgress(4, rebootingPhase, boot)}, nil, nil},
		"unknown":                                   {Record{ProgressErr: errors.New("no JSON")}, nil, new(metav1.NewTime(now))},
		"not recorded, and the node drains":         {Record{Progress: makeProgress(5, drainingPhase, boot)}, noted, nil},
		"not recorded, and the attempt was aborted": {Record{Progress: makeProgress(5, abortedPhase, boot)}, noted, noted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := NoteReboot(tc.record, v1alpha1.LedgerEntry{Seq: 5, RebootingAt: tc.noted}, now)
			if diff := cmp.Diff(tc.want, got.RebootingAt); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// An entry is only for the Node with its UID. An entry without a UID is for no Node.
func TestPublish_OnlyOnTheNodeOfTheEntry(t *testing.T) {
	for uid, want := range map[types.UID]bool{"1": true, "2": false, "": false} {
		e := v1alpha1.LedgerEntry{NodeUID: uid, Seq: 7, BootID: boot}
		if _, ok := Publish(Record{UID: "1"}, e, "workers", now); ok != want {
			t.Errorf("an entry for Node %q is published on Node 1: %t", uid, ok)
		}
		if _, ok := Cancel(Record{UID: "1", Grant: makeGrant(7, active, boot)}, e, "workers", "", "", now); ok != want {
			t.Errorf("an entry for Node %q is cancelled on Node 1: %t", uid, ok)
		}
	}
}
