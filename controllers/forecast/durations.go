package forecast

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// What drain and reboot are taken to last before the policy has seen one.
const (
	assumedDrain  = 2 * time.Minute
	assumedReboot = plan.AssumedReboot - assumedDrain
)

// Durations is how long each phase of a reboot is expected to last.
type Durations struct {
	// Before is from the grant to the drain, which is the hooks before the reboot. What no reboot has shown is taken for none.
	Before metav1.Duration `json:"before"`
	// Drain is from the cordon to the point of no return. At least drain.leadTime.
	Drain  metav1.Duration `json:"drain"`
	Reboot metav1.Duration `json:"reboot"`
	// Settle is from the agent's first report to back in service, the hooks after the boot included. At least spec.settle.
	Settle metav1.Duration `json:"settle"`
	// Measured is how many reboots of status.history they are the median of. 0: they are assumed.
	Measured int `json:"measured"`
}

// Total is from the grant to back in service.
func (d Durations) Total() time.Duration {
	return d.Before.Duration + d.Drain.Duration + d.Reboot.Duration + d.Settle.Duration
}

// underWay is a reboot that was granted earlier: what is past as it was, and the rest as expected from now on.
func (d Durations) underWay(n *plan.Node, granted, now time.Time) Reboot {
	p := n.Progress
	granted = timing.Earliest(granted, now) // the past ends now, whatever a node's clock reports
	r := Reboot{Node: n.Name, InProgress: true, StartsAt: granted, DrainsAt: timing.Latest(granted.Add(d.Before.Duration), now)}
	r.RebootsAt = timing.Latest(r.DrainsAt.Add(d.Drain.Duration), now)
	r.SettlesAt = timing.Latest(r.RebootsAt.Add(d.Reboot.Duration), now)
	switch {
	case p == nil || p.Phase == protocol.PhaseAborted:
	case p.Phase == protocol.PhaseDraining:
		r.DrainsAt = timing.Earliest(p.At.Time, now)
		r.RebootsAt = timing.Latest(r.DrainsAt.Add(d.Drain.Duration), now)
		r.SettlesAt = r.RebootsAt.Add(d.Reboot.Duration)
	default:
		r.RebootsAt = timing.Earliest(p.At.Time, now)
		r.DrainsAt, r.SettlesAt = r.RebootsAt, timing.Latest(r.RebootsAt.Add(d.Reboot.Duration), now)
		if p.DrainStartedAt != nil {
			r.DrainsAt = timing.Earliest(p.DrainStartedAt.Time, r.RebootsAt)
		}
		if n.BootID != "" && n.BootID != p.BootID && n.Ready && !n.Maintenance {
			r.SettlesAt = timing.Earliest(timing.Latest(n.ReadySince, n.MaintenanceSince), now)
		}
	}
	r.EndsAt = timing.Latest(r.SettlesAt.Add(d.Settle.Duration), now)
	return r
}

// Expect is the median of what the policy's reboots took, each phase by itself. Until one has succeeded it is what plan
// assumes, drain.leadTime and two minutes of drain and three of reboot, and spec.settle.
func Expect(policy *v1alpha1.RebootPolicy) Durations {
	lead := policy.Spec.DrainOrDefault().LeadTimeOrDefault()
	d := Durations{
		Drain: metav1.Duration{Duration: lead + assumedDrain}, Reboot: metav1.Duration{Duration: assumedReboot},
		Settle: metav1.Duration{Duration: policy.Spec.SettleOrDefault()},
	}
	var before, drain, reboot, settle []time.Duration
	for _, past := range policy.Status.History {
		if past.Result != v1alpha1.RebootSucceeded || past.Drain == nil || past.Reboot == nil || past.Settle == nil {
			continue
		}
		drain, reboot, settle = append(drain, past.Drain.Duration), append(reboot, past.Reboot.Duration), append(settle, past.Settle.Duration)
		known := past.Drain.Duration + past.Reboot.Duration + past.Settle.Duration
		before = append(before, max(0, past.EndedAt.Sub(past.GrantedAt.Time)-known))
	}
	if d.Measured = len(drain); d.Measured > 0 {
		d.Before.Duration, d.Drain.Duration, d.Reboot.Duration = median(before), max(lead, median(drain)), median(reboot)
		d.Settle.Duration = max(d.Settle.Duration, median(settle))
	}
	return d
}

// median is the lower one of an even number.
func median(took []time.Duration) time.Duration {
	slices.Sort(took)
	return took[(len(took)-1)/2]
}
