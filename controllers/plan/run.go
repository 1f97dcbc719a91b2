package plan

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Run is the run after the plan, from the status before it, and whether it is over. Nil: there is none. What a run counts
// is in the status, so that every leader goes on with it.
func (p *Plan) Run(before v1alpha1.RebootPolicyStatus, now time.Time) (run *v1alpha1.RunStatus, over bool) {
	over = len(p.Ledger()) == 0
	switch {
	case before.Run != nil:
		run = before.Run.DeepCopy()
	case over:
		return nil, true
	default:
		run = &v1alpha1.RunStatus{StartedAt: metav1.NewTime(now), Seq: before.Seq}
	}
	for _, t := range p.Released() {
		switch past := t.past(now); {
		case past == nil:
		case past.Result == v1alpha1.RebootSucceeded:
			run.Rebooted++
		default:
			run.Failed++
		}
	}
	return run, over
}
