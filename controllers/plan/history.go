package plan

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// maxHistoryBytes limits the history, which is written with every grant and sent to every watcher.
// MaxHistory Nodes with the longest names fit that were deleted in their reboots.
// pastBytes is the size of one entry as JSON without its names and messages.
const maxHistoryBytes, pastBytes = 10 << 10, 352

// maxUnexpected is the most reboots in the history that nobody granted. Others must not crowd out the
// reboots by which a policy halts.
const maxUnexpected = 3

// unexpected returns the reboots that nobody granted and that the agents of the policy's nodes report.
func unexpected(c *choice) []v1alpha1.PastReboot {
	var all []v1alpha1.PastReboot
	for _, n := range c.Governed {
		if u := n.UnexpectedReboot(c.Now); u != nil {
			all = append(all, v1alpha1.PastReboot{
				Node: n.Name, Result: v1alpha1.RebootUnexpected, GrantedAt: u.At, EndedAt: u.At, Ring: c.order.Rings.Name(n),
				FromVersion: u.FromVersion, ToVersion: u.ToVersion,
			})
		}
	}
	slices.SortFunc(all, func(a, b v1alpha1.PastReboot) int {
		return cmp.Or(a.EndedAt.Compare(b.EndedAt.Time), cmp.Compare(a.Node, b.Node))
	})
	return all[max(0, len(all)-maxUnexpected):]
}

// withUnexpected returns the history with the reboots that nobody granted, each at its time. The oldest
// of those go if there are more than maxUnexpected.
func (p *Plan) withUnexpected(history []v1alpha1.PastReboot) []v1alpha1.PastReboot {
	for _, u := range p.Unexpected {
		if slices.ContainsFunc(history, func(h v1alpha1.PastReboot) bool {
			return h.Result == u.Result && h.Node == u.Node && h.EndedAt.Time.Equal(u.EndedAt.Time)
		}) {
			continue
		}
		at := slices.IndexFunc(history, func(h v1alpha1.PastReboot) bool { return h.EndedAt.After(u.EndedAt.Time) })
		if at < 0 {
			at = len(history)
		}
		history = slices.Insert(slices.Clone(history), at, u)
	}
	count := 0
	for i, h := range slices.Backward(history) {
		if h.Result != v1alpha1.RebootUnexpected {
			continue
		}
		if count++; count > maxUnexpected {
			history = slices.Delete(history, i, i+1)
		}
	}
	return history
}

// History returns the policy's history after the plan: the previous entries followed by the reboots
// that end now. The oldest entries are dropped first. Those that still count as failures are dropped
// last, because a Node that was deleted has no other record.
func (p *Plan) History(policy *v1alpha1.RebootPolicy, now time.Time) []v1alpha1.PastReboot {
	before := policy.Status.History
	history := p.withUnexpected(slices.Concat(before, underway.Ended(p.Reboots, before, now)))
	resumed, succeeded, bytes := record.Resumed(policy, now), map[string]time.Time{}, 0
	for _, past := range history {
		bytes += size(past)
		if past.Result == v1alpha1.RebootSucceeded {
			succeeded[past.Ring] = timing.Latest(succeeded[past.Ring], past.EndedAt.Time)
		}
	}
	number := len(history)
	for _, all := range []bool{false, true} {
		history = slices.DeleteFunc(history, func(past v1alpha1.PastReboot) bool {
			counts := past.Reason == v1alpha1.ReasonNodeGoneInReboot && past.EndedAt.After(timing.Latest(resumed, succeeded[past.Ring]))
			if number <= v1alpha1.MaxHistory && bytes <= maxHistoryBytes || counts && !all {
				return false
			}
			number, bytes = number-1, bytes-size(past)
			return true
		})
	}
	return history
}

func size(p v1alpha1.PastReboot) int {
	return pastBytes + len(p.Node) + len(p.Reason) + len(p.Message) + len(p.FromVersion) + len(p.ToVersion) + len(p.FromKernel) + len(p.ToKernel) + len(p.Ring)
}

// Run returns the run after the plan, given the status before it, and whether it is over. It
// returns nil if no run is under way. The counts of a run are in the status, so that a new leader
// continues them.
func (p *Plan) Run(before v1alpha1.RebootPolicyStatus, now time.Time) (run *v1alpha1.RunStatus, over bool) {
	none := len(p.Ledger.Own()) == 0
	// During concurrency.spacing and the soak of concurrency.firstBatch the ledger may be empty although the run goes on.
	over = none && p.RunHooks == nil && !slices.ContainsFunc(p.Blocked, func(b v1alpha1.BlockedNodes) bool { return b.Reason == v1alpha1.ReasonSpacing })
	switch {
	case before.Run != nil:
		run = before.Run.DeepCopy()
	case none && p.RunHooks == nil:
		return nil, true
	default:
		run = &v1alpha1.RunStatus{StartedAt: metav1.NewTime(now), Seq: before.Seq}
	}
	for _, past := range underway.Ended(p.Reboots, before.History, now) {
		if past.Result == v1alpha1.RebootSucceeded {
			run.Rebooted++
		} else {
			run.Failed++
		}
	}
	if run.Hooks = p.RunHooks.DeepCopy(); run.Hooks != nil && run.Hooks.At.IsZero() {
		run.Hooks.At = metav1.NewTime(now)
	}
	return run, over
}
