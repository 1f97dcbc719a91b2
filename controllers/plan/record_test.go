package plan_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// answers are what the guards report about a record, and entry 5 for boot worker-1-boot-1.
type answers struct {
	Publish, Cancel, Finish, Releasable, Outstanding bool
	Next                                             int64
}

// TestRecord: what the manager may do next, by what the Node shows. The search of api/protocol shows that it is safe;
// this shows what it is.
func TestRecord(t *testing.T) {
	const active, cancelled, finished = protocol.GrantActive, protocol.GrantCancelled, protocol.GrantFinished
	const drains, reboots, aborted = protocol.PhaseDraining, protocol.PhaseRebooting, protocol.PhaseAborted
	lost := annotated(v1alpha1.AnnotationProgress, "?")
	cases := map[string]struct {
		record []func(*host)
		want   answers
	}{
		"nothing yet":                          {nil, answers{Publish: true, Cancel: true, Next: 1}},
		"hooks were asked for it":              {options(phase(5, v1alpha1.HooksBefore, 0)), answers{Publish: true, Cancel: true, Next: 6}},
		"an unreadable progress, and no grant": {options(lost), answers{Publish: true, Cancel: true, Next: 1}},
		"published":                            {options(grant(5, active)), answers{Cancel: true, Outstanding: true, Next: 6}},
		"draining":                             {options(grant(5, active), progress(5, drains)), answers{Cancel: true, Outstanding: true, Next: 6}},
		"rebooting":                            {options(grant(5, active), progress(5, reboots)), answers{Outstanding: true, Next: 6}},
		"up again":                             {options(grant(5, active), progress(5, reboots), bootID("two")), answers{Finish: true, Outstanding: true, Next: 6}},
		"up again, by a kubelet without a boot ID":      {options(grant(5, active), progress(5, reboots), bootID("")), answers{Outstanding: true, Next: 6}},
		"draining, and up again":                        {options(grant(5, active), progress(5, drains), bootID("two")), answers{Cancel: true, Outstanding: true, Next: 6}},
		"finished":                                      {options(grant(5, finished), progress(5, reboots), bootID("two")), answers{Releasable: true, Next: 6}},
		"aborted":                                       {options(grant(5, active), progress(5, aborted)), answers{Cancel: true, Releasable: true, Next: 6}},
		"aborted, and the grant is gone":                {options(progress(5, aborted)), answers{Publish: true, Cancel: true, Releasable: true, Next: 6}},
		"cancelled before the start":                    {options(grant(5, cancelled)), answers{Releasable: true, Next: 6}},
		"cancelled, after an earlier attempt":           {options(grant(5, cancelled), progress(4, aborted)), answers{Releasable: true, Next: 6}},
		"cancelled, and the agent drains still":         {options(grant(5, cancelled), progress(5, drains)), answers{Outstanding: true, Next: 6}},
		"cancelled, and the agent gave up":              {options(grant(5, cancelled), progress(5, aborted)), answers{Releasable: true, Next: 6}},
		"cancelled by hand while it reboots":            {options(grant(5, cancelled), progress(5, reboots)), answers{Outstanding: true, Next: 6}},
		"cancelled by hand, and up again":               {options(grant(5, cancelled), progress(5, reboots), bootID("two")), answers{Finish: true, Outstanding: true, Next: 6}},
		"published, and the progress is unreadable":     {options(grant(5, active), lost), answers{Outstanding: true, Next: 6}},
		"cancelled, and the progress is unreadable":     {options(grant(5, cancelled), lost), answers{Next: 6}},
		"finished, and the progress is unreadable":      {options(grant(5, finished), lost), answers{Next: 6}},
		"an older grant is finished":                    {options(grant(4, finished), progress(4, reboots)), answers{Publish: true, Cancel: true, Next: 5}},
		"an older grant was cancelled":                  {options(grant(4, cancelled), progress(3, reboots)), answers{Publish: true, Cancel: true, Next: 5}},
		"an older grant was given up":                   {options(grant(4, active), progress(4, aborted)), answers{Publish: true, Cancel: true, Next: 5}},
		"an older grant is published":                   {options(grant(4, active)), answers{Outstanding: true, Next: 5}},
		"an older grant is drained for":                 {options(grant(4, active), progress(4, drains)), answers{Outstanding: true, Next: 5}},
		"an older grant is cancelled and drained for":   {options(grant(4, cancelled), progress(4, drains)), answers{Outstanding: true, Next: 5}},
		"a newer grant is published":                    {options(grant(6, active)), answers{Releasable: true, Outstanding: true, Next: 7}},
		"a newer grant is published after this reboot":  {options(grant(6, active), progress(5, reboots)), answers{Releasable: true, Outstanding: true, Next: 7}},
		"a newer grant is published in this very drain": {options(grant(6, active), progress(5, drains)), answers{Outstanding: true, Next: 7}},
		"this grant is gone while it drains":            {options(progress(5, drains)), answers{Publish: true, Cancel: true, Outstanding: true, Next: 6}},
		"this grant is gone while it reboots":           {options(progress(5, reboots)), answers{Publish: true, Cancel: true, Outstanding: true, Next: 6}},
		"an older grant came back while it reboots":     {options(grant(4, active), progress(5, reboots)), answers{Publish: true, Cancel: true, Outstanding: true, Next: 6}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n, e := needy("worker-1", tc.record...).view(), entry("worker-1", 5)
			var got answers
			_, got.Publish = protocol.Publish(n.Record, e, "workers", evening)
			_, got.Cancel = protocol.Cancel(n.Record, e, "workers", evening)
			_, got.Finish = protocol.Finish(n.Record, e, "workers", n.BootID, evening)
			got.Releasable, got.Outstanding = protocol.Releasable(n.Record, e), n.Outstanding()
			got.Next = protocol.NextSeq(0, n.Record)
			same(t, "answers", tc.want, got)
		})
	}
}

// options are what changes a host, or a policy.
func options[T any](list ...func(*T)) []func(*T) { return list }

// What is written carries the entry's number and boot, who writes it, what it permits and when.
func TestRecord_Writes(t *testing.T) {
	e := v1alpha1.LedgerEntry{Node: "worker-1", Seq: 5, BootID: "worker-1-boot-1"}
	published, _ := protocol.Publish(protocol.Record{}, e, "workers", evening)
	cancel, _ := protocol.Cancel(protocol.Record{}, e, "workers", evening)
	finish, _ := protocol.Finish(protocol.Record{}, e, "workers", "", evening)
	for state, got := range map[protocol.GrantState]protocol.Grant{
		protocol.GrantActive: published, protocol.GrantCancelled: cancel, protocol.GrantFinished: finish,
	} {
		want := protocol.Grant{Policy: "workers", Seq: 5, BootID: "worker-1-boot-1", State: state, At: metav1.NewTime(evening)}
		same(t, "grant", want, got)
	}
}

// Two policies may give one number to one node, which moves between them. Then the first grant counts (behaviour 61).
func TestRecord_TwoPolicies(t *testing.T) {
	n, e := needy("worker-1", grant(5, protocol.GrantActive, givenBy("first"))).view(), entry("worker-1", 5)
	for policy, want := range map[string]bool{"first": false, "second": true} {
		if got := protocol.Overtaken(n.Record, e, policy); got != want {
			t.Errorf("overtaken, for %s: %t", policy, got)
		}
	}
	if protocol.Overtaken(n.Record, entry("worker-1", 6), "second") || protocol.Overtaken(protocol.Record{}, e, "second") {
		t.Error("overtaken by another number, or by nothing")
	}
	if got, _ := protocol.Cancel(n.Record, e, "second", evening); got.Policy != "first" {
		t.Errorf("cancelled in the name of %s, whose ledger would not know it any more", got.Policy)
	}
	if _, ok := protocol.Publish(n.Record, e, "second", evening); ok {
		t.Error("a second grant")
	}
}
