package plan_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// ran sets a run after grant 4, with the nodes that have come back in it, each some time ago.
func ran(failed int32, back map[string]time.Duration) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Status.Seq, p.Status.Run = 9, &v1alpha1.RunStatus{StartedAt: metav1.NewTime(evening.Add(-2 * time.Hour)), Seq: 4, Rebooted: int32(len(back)), Failed: failed}
		for node, ago := range back {
			at := metav1.NewTime(evening.Add(-ago))
			p.Status.History = append(p.Status.History, v1alpha1.PastReboot{Node: node, Seq: 5, Result: v1alpha1.RebootSucceeded, GrantedAt: at, EndedAt: at})
		}
	}
}

// readySince sets when the node became Ready, or ceased to be, counted from the evening.
func readySince(d time.Duration) func(*host) {
	return func(h *host) {
		conditionOf(h.node, corev1.NodeReady).LastTransitionTime = metav1.NewTime(evening.Add(d))
	}
}

// TestFirstBatch shows how many of five nodes go in a run that begins with some of them and grows to
// three, and what the next one waits for.
func TestFirstBatch(t *testing.T) {
	begins := func(nodes string, mods ...func(*v1alpha1.RebootPolicy)) *v1alpha1.RebootPolicy {
		return policy("workers", append([]func(*v1alpha1.RebootPolicy){atMost("3"), firstBatch(nodes, 30*minute)}, mods...)...)
	}
	back := func(ago time.Duration) map[string]time.Duration { return map[string]time.Duration{"done": ago} }
	waiting := hosts(needy, "a b c d e")
	const (
		begin1 = "waiting for its turn: the run begins with 1 node, and the others wait until it is back and has soaked for 30m0s"
		begin2 = "waiting for its turn: the run begins with 2 nodes, and the others wait until each is back and has soaked for 30m0s"
		failed = "waiting for its turn: an attempt has failed, so at most 1 node may be unavailable at once until the run is over"
		grown  = "waiting for its turn: at most 3 of the nodes may be unavailable at once"
		soaks  = "waiting for its turn: done, one of the first nodes of the run, soaks until Mon 2026-06-01 22:10:00 UTC"
		down   = "waiting for its turn: done, one of the first nodes of the run, is not Ready; the others wait until it has been back for 30m0s"
	)
	finished := grant(5, protocol.GrantFinished, grantedAt(-20*minute))
	for name, tc := range map[string]struct {
		policy  *v1alpha1.RebootPolicy
		others  []*host
		granted int
		message string
	}{
		"no run yet":                                              {begins("1"), nil, 1, begin1},
		"a percentage rounds down, to one":                        {begins("10%"), nil, 1, begin1},
		"a percentage":                                            {begins("50%"), nil, 2, begin2},
		"more first nodes than may be unavailable":                {begins("4"), nil, 3, grown},
		"a run without a node that is back":                       {begins("1", ran(0, nil)), nil, 1, begin1},
		"one of two is back":                                      {begins("2", ran(0, back(time.Hour))), nil, 1, begin2},
		"the only first node is back and soaks":                   {begins("1", ran(0, back(20*minute))), nil, 0, soaks},
		"the first node has soaked":                               {begins("1", ran(0, back(30*minute))), nil, 3, grown},
		"its Node also shows that it is back, and it soaks":       {begins("1", ran(0, back(20*minute))), []*host{newHost("done", finished)}, 0, soaks},
		"the first node went down during its soak":                {begins("1", ran(0, back(20*minute))), []*host{newHost("done", finished, notReady, readySince(-5*minute))}, 0, down},
		"the first node was down during its soak, which restarts": {begins("1", ran(0, back(50*minute))), []*host{newHost("done", readySince(-20*minute))}, 0, soaks},
		"the first node was down long after its soak":             {begins("1", ran(0, back(2*time.Hour))), []*host{newHost("done", readySince(-20*minute))}, 3, grown},
		"an attempt has failed":                                   {begins("1", ran(1, back(2*time.Hour))), nil, 1, failed},
		"the history no longer has the first nodes":               {begins("1", ran(0, back(20*minute)), func(p *v1alpha1.RebootPolicy) { p.Status.Run.Rebooted = 30 }), nil, 3, grown},
		"only its Node shows that the first node is back, and it soaks": {
			begins("1", ran(0, back(20*minute)), func(p *v1alpha1.RebootPolicy) { p.Status.History = nil }), []*host{newHost("done", finished)}, 0, soaks,
		},
		"its Node shows a time that cannot be right": {
			begins("1", ran(0, back(20*minute)), func(p *v1alpha1.RebootPolicy) { p.Status.History = nil }), []*host{newHost("done", grant(5, protocol.GrantFinished, grantedAt(50*minute)))}, 3, grown,
		},
		"only the Nodes of an earlier run show that they are back": {
			begins("1", ran(0, back(time.Hour)), func(p *v1alpha1.RebootPolicy) { p.Status.History, p.Status.Run.Seq = nil, 7 }), []*host{newHost("done", finished)}, 3, grown,
		},
		"the history is from earlier runs": {begins("1", ran(0, back(time.Hour)), func(p *v1alpha1.RebootPolicy) { p.Status.Run.Seq, p.Status.Run.Rebooted = 7, 0 }), nil, 1, begin1},
		"the run is over":                  {begins("1", ran(0, back(time.Hour)), func(p *v1alpha1.RebootPolicy) { p.Status.Run = nil }), nil, 1, begin1},
		"another node is down":             {begins("2"), []*host{newHost("other", notReady)}, 1, begin2},
		"without firstBatch":               {policy("workers", atMost("3")), nil, 3, grown},
	} {
		t.Run(name, func(t *testing.T) {
			p := one(tc.policy, append(tc.others, waiting...)...).plan()
			if len(p.Ledger.Granted) != tc.granted {
				t.Errorf("%d are granted, want %d", len(p.Ledger.Granted), tc.granted)
			}
			next := string(rune('a' + tc.granted))
			same(t, "why "+next+" waits", tc.message, decided(p, next).Message)
		})
	}
}

// A node that comes back in this very plan counts, and so does one that fails in it.
func TestFirstBatch_CountsWhatEndsNow(t *testing.T) {
	begins := policy("workers", atMost("3"), firstBatch("1", 30*minute), ran(0, nil), holding(9, entry("done", 5)))
	ends := newHost("done", grant(5, protocol.GrantFinished), progress(5, protocol.PhaseRebooting))
	p := one(begins, append(hosts(needy, "a b c d"), ends)...).plan()
	if len(p.Ledger.Granted) != 0 || decided(p, "a").Reason != v1alpha1.ReasonSpacing || p.Batch == nil || p.Batch.Limit != 0 {
		t.Errorf("granted %v, batch %+v, %s", p.Ledger.Granted, p.Batch, decided(p, "a").Message)
	}
	if run, over := p.Run(begins.Status, evening); over || run.Rebooted != 1 {
		t.Errorf("the run is over (%t) during the soak: %+v", over, run)
	}
	fails := needy("done", grant(5, protocol.GrantActive), progress(5, protocol.PhaseAborted, func(p *protocol.Progress) { p.Failures = 1 }))
	p = one(begins, append(hosts(needy, "a b c d"), fails)...).plan()
	if len(p.Ledger.Granted) != 1 || p.Batch == nil || p.Batch.Limit != 1 {
		t.Errorf("granted %v, batch %+v", p.Ledger.Granted, p.Batch)
	}
}
