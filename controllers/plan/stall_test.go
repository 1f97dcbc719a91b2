package plan_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// TestPlan_NamesNodesThatUseUpTheLimit checks that a node that is down or cordoned and uses up the
// limit is named after an hour, with the command that helps. Reboots that take their turns and
// nodes that are down for a moment are not.
func TestPlan_NamesNodesThatUseUpTheLimit(t *testing.T) {
	cordonedFor := func(age time.Duration) func(*host) {
		return func(h *host) {
			h.node.Spec.Unschedulable = true
			h.node.Spec.Taints = append(h.node.Spec.Taints, corev1.Taint{
				Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &metav1.Time{Time: evening.Add(-age)},
			})
		}
	}
	downFor := func(age time.Duration) func(*host) {
		return func(h *host) {
			c := conditionOf(h.node, corev1.NodeReady)
			c.Status, c.LastTransitionTime = corev1.ConditionUnknown, metav1.NewTime(evening.Add(-age))
		}
	}
	waitingFor := func(age time.Duration) func(*host) {
		return func(h *host) {
			since := metav1.NewTime(evening.Add(-age))
			h.node.Status.Conditions = append(h.node.Status.Conditions, corev1.NodeCondition{
				Type: v1alpha1.NodeRebootPermitted, Status: corev1.ConditionFalse, Reason: string(v1alpha1.ReasonBudgetExhausted),
				LastHeartbeatTime: since, LastTransitionTime: since,
			})
		}
	}
	const hour, minute = time.Hour, time.Minute
	for name, tc := range map[string]struct {
		limit string
		hosts []*host
		want  []string // the nodes
		says  string
		next  time.Duration // until the answer changes, or 0 if it does not
	}{
		"a forgotten cordon": {
			"1",
			[]*host{newHost("c", cordonedFor(2*hour)), needy("w", waitingFor(2*hour))},
			[]string{"c"},
			"at most 1 of the nodes may be unavailable at once; the limit is used up by c (is cordoned): " +
				"if nobody needs the cordon any more, run: kubectl uncordon c", 0,
		},
		"a cordon of unknown age": {
			"1", []*host{newHost("c", func(h *host) { h.node.Spec.Unschedulable = true }), needy("w", waitingFor(hour))}, []string{"c"}, "kubectl uncordon c", 0,
		},
		"a broken machine":                           {"1", []*host{newHost("c", downFor(hour)), needy("w", waitingFor(hour))}, []string{"c"}, "kubectl describe node c", 0},
		"a cordon of minutes":                        {"1", []*host{newHost("c", cordonedFor(50*minute)), needy("w", waitingFor(2*hour))}, nil, "", 10 * minute},
		"a wait of minutes":                          {"1", []*host{newHost("c", cordonedFor(9*hour)), needy("w", waitingFor(50*minute))}, nil, "", 10 * minute},
		"no node waits":                              {"1", []*host{newHost("c", cordonedFor(2*hour))}, nil, "", 0},
		"a slot is left":                             {"2", []*host{newHost("c", cordonedFor(2*hour)), needy("w", waitingFor(2*hour))}, nil, "", 0},
		"both of two slots are used up":              {"2", []*host{newHost("c", cordonedFor(2*hour)), newHost("d", downFor(2*hour)), needy("w", waitingFor(2*hour))}, []string{"c", "d"}, "c (is cordoned), d (is not Ready)", 0},
		"both of two slots, one of them for minutes": {"2", []*host{newHost("c", cordonedFor(2*hour)), newHost("d", downFor(40*minute)), needy("w", waitingFor(2*hour))}, nil, "", 20 * minute},
		"a limit of 0":                               {"0", []*host{newHost("c", cordonedFor(2*hour)), needy("w", waitingFor(2*hour))}, nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := situation{policies: []*v1alpha1.RebootPolicy{policy("workers", atMost(tc.limit))}, hosts: tc.hosts}.plan()
			var got []string
			if p.Stall != nil {
				got = p.Stall.Nodes
			}
			same(t, "nodes", tc.want, got)
			if d := decided(p, "w"); tc.says != "" && !strings.Contains(d.Message, tc.says) || d.Message != "" && (tc.want == nil) != !strings.Contains(d.Message, "used up by") {
				t.Errorf("the node that waits says %q", d.Message)
			}
			if next := p.Next.Sub(evening); tc.next > 0 && next != tc.next {
				t.Errorf("the answer changes in %s, want %s", next, tc.next)
			}
		})
	}
}
