package plan_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// running is a run that began an hour ago, of which two nodes are back.
func running(p *v1alpha1.RebootPolicy) {
	p.Status.Run = &v1alpha1.RunStatus{StartedAt: metav1.NewTime(evening.Add(-time.Hour)), Seq: 4, Rebooted: 2}
}

// TestPlan_Run: a run begins with the first grant, counts what ends, and is over when no node holds a grant.
func TestPlan_Run(t *testing.T) {
	run := func(ago time.Duration, seq int64, rebooted, failed int32) *v1alpha1.RunStatus {
		return &v1alpha1.RunStatus{StartedAt: metav1.NewTime(evening.Add(-ago)), Seq: seq, Rebooted: rebooted, Failed: failed}
	}
	inProgress := holding(7, entry("worker-1", 7))
	back := newHost("worker-1", grant(7, protocol.GrantFinished), progress(7, protocol.PhaseRebooting))
	aborted := needy("worker-1", grant(7, protocol.GrantActive), progress(7, protocol.PhaseAborted, failed(1, v1alpha1.ReasonDrainTimedOut, "")))
	for name, tc := range map[string]struct {
		situation situation
		want      *v1alpha1.RunStatus
		over      bool
	}{
		"nobody needs a reboot": {one(policy("workers"), newHost("worker-1")), nil, true},
		"nobody may go":         {one(policy("workers", atMost("0")), needy("worker-1")), nil, true},
		"the first grant":       {one(policy("workers", holding(7)), needy("worker-1")), run(0, 7, 0, 0), false},
		"the status has no run, and a node holds a grant": {one(policy("workers", inProgress), needy("worker-1")), run(0, 7, 0, 0), false},
		"in progress":                        {one(policy("workers", inProgress, running), needy("worker-1")), run(time.Hour, 4, 2, 0), false},
		"one is back, and the next one goes": {one(policy("workers", inProgress, running), back, needy("worker-2")), run(time.Hour, 4, 3, 0), false},
		"the last one is back":               {one(policy("workers", inProgress, running), back), run(time.Hour, 4, 3, 0), true},
		"one is back, and the next one goes after the spacing": {
			one(policy("workers", spacing(10*minute), inProgress, running), back, needy("worker-2")), run(time.Hour, 4, 3, 0), false,
		},
		"within the spacing, without a run": {one(policy("workers", spacing(10*minute), lastReboot(-minute)), needy("worker-1")), nil, true},
		"the last one failed":               {one(policy("workers", inProgress, running), aborted), run(time.Hour, 4, 2, 1), true},
		"the last one was deleted":          {one(policy("workers", inProgress, running)), run(time.Hour, 4, 2, 1), true},
		"the grant was taken back before it began": {
			one(policy("workers", inProgress, running), newHost("worker-1", grant(7, protocol.GrantCancelled))), run(time.Hour, 4, 2, 0), true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.situation.plan()
			got, over := p.Run(tc.situation.policies[0].Status, evening)
			same(t, "run", tc.want, got)
			same(t, "over", tc.over, over)
		})
	}
}
