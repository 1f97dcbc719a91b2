package plan_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// TestReboots_ANodeThatWasServedGoesLast: a need that survives the boot keeps the time at which it began. Such a node would else
// go first for ever, and no other would have its turn.
func TestReboots_ANodeThatWasServedGoesLast(t *testing.T) {
	served := grant(5, protocol.GrantFinished, grantedAt(-minute))
	// maintained is what another program leaves behind that has maintained the node.
	maintained := nodeCondition(corev1.NodeMaintenanceInProgress, corev1.ConditionFalse, -minute)
	long, inZone := needsSince(50*minute), func(name string) func(*host) { return label(corev1.LabelTopologyZone, name) }
	for name, tc := range map[string]struct {
		hosts []*host
		want  string
	}{
		"behind one whose need is newer than the reboot":  {[]*host{needy("a", long, served), needy("b", needsSince(0))}, "b"},
		"though its zone comes first":                     {[]*host{needy("a", long, served, inZone("a")), needy("b", needsSince(0), inZone("b"))}, "b"},
		"of two, the one that was served longer ago":      {[]*host{needy("a", long, served), needy("b", long, grant(5, protocol.GrantFinished, grantedAt(-2*minute)))}, "b"},
		"though its next grant was taken back":            {[]*host{needy("a", long, reportedBack(-minute), grant(6, protocol.GrantCancelled)), needy("b", needsSince(0))}, "b"},
		"but not one that another program has maintained": {[]*host{needy("a", long, maintained), needy("b", needsSince(0))}, "a"},
		"but first if its request is urgent":              {[]*host{needy("a", long, served, urgently), needy("b", needsSince(0))}, "a"},
		"but a need since its reboot is a new one":        {[]*host{needy("b", needsSince(minute/2), served), needy("c", needsSince(0))}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			p := one(policy("workers", allowsUrgent, holding(5), domains(corev1.LabelTopologyZone)), tc.hosts...).plan()
			same(t, "granted", []string{tc.want}, names(p.Granted))
		})
	}
}

// TestReboots_ANodeWhoseLastGrantCameToNothingGoesLast: its back-off is over, and it has waited longest. Four nodes whose agents are dead
// would else take turns for ever: each holds the slot for 5 minutes and backs off for 15. So would one alone whose host goes down again and again.
func TestReboots_ANodeWhoseLastGrantCameToNothingGoesLast(t *testing.T) {
	long, ago := needsSince(50*time.Hour), cancelledAt(-10*time.Hour, v1alpha1.ReasonAgentSilent)
	silent := grant(5, protocol.GrantCancelled, ago)
	refused := grant(5, protocol.GrantCancelled, cancelledAt(-10*time.Hour, v1alpha1.ReasonHookTimedOut))
	crashed := options(grant(5, protocol.GrantCancelled, cancelledAt(-10*time.Hour, v1alpha1.ReasonCancelled)), bootID("two"))
	crashedInDrain := options(grant(5, protocol.GrantActive, grantedAt(-10*time.Hour)), progress(5, protocol.PhaseAborted, phaseAt(-10*time.Hour)), bootID("two"))
	inZone := func(name string) func(*host) { return label(corev1.LabelTopologyZone, name) }
	withdrawn := func(p *v1alpha1.RebootPolicy) {
		p.Status.History = []v1alpha1.PastReboot{{Node: "a", Seq: 5, Result: v1alpha1.RebootWithdrawn, EndedAt: at(-10 * time.Hour)}}
	}
	for name, tc := range map[string]struct {
		hosts []*host
		want  string
		past  []func(*v1alpha1.RebootPolicy)
	}{
		"its agent was silent":                        {[]*host{needy("a", long, silent), needy("b", needsSince(0))}, "b", nil},
		"a hook was silent":                           {[]*host{needy("a", long, refused), needy("b", needsSince(0))}, "b", nil},
		"the Node took no write":                      {[]*host{needy("a", long), needy("b", needsSince(0))}, "b", []func(*v1alpha1.RebootPolicy){withdrawn}},
		"though its zone comes first":                 {[]*host{needy("a", long, silent, inZone("a")), needy("b", needsSince(0), inZone("b"))}, "b", nil},
		"behind one whose need has survived a reboot": {[]*host{needy("a", long, silent), needy("b", long, grant(5, protocol.GrantFinished))}, "b", nil},
		"its host went down before it began":          {[]*host{needy("a", append(crashed, long)...), needy("b", needsSince(0))}, "b", nil},
		"its host went down in the drain":             {[]*host{needy("a", append(crashedInDrain, long)...), needy("b", needsSince(0))}, "b", nil},
		"but not for a need since then":               {[]*host{needy("a", append(crashed, needsSince(minute))...), needy("b", needsSince(0))}, "a", nil},
		"though it is past its deadline":              {[]*host{needy("a", needsSince(99*time.Hour), silent), needy("b", needsSince(0))}, "b", nil},
		"but first if its request is urgent":          {[]*host{needy("a", long, silent, urgently), needy("b", needsSince(0))}, "a", nil},
		"alone":                                       {[]*host{needy("a", long, silent)}, "a", nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := policy("workers", append(tc.past, allowsUrgent, holding(5), deadline(72*time.Hour), domains(corev1.LabelTopologyZone))...)
			same(t, "granted", []string{tc.want}, names(one(p, tc.hosts...).plan().Granted))
		})
	}
}

// TestReboots_GrantsShowSinceWhenTheNodeNeedsIt: after the reboot nothing else does.
func TestReboots_GrantsShowSinceWhenTheNodeNeedsIt(t *testing.T) {
	for name, tc := range map[string]struct {
		node *host
		want time.Time
	}{
		"since it needs one":                 {needy("a", needsSince(time.Hour)), evening.Add(-time.Hour)},
		"since a reboot that did not end it": {needy("a", needsSince(time.Hour), grant(5, protocol.GrantFinished, grantedAt(-minute))), evening.Add(-minute)},
		"nobody knows since when":            {needy("a", needsAt(time.Time{})), time.Time{}},
		"its clock was never set":            {needy("a", needsAt(time.Unix(0, 0))), time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := one(policy("workers", holding(5)), tc.node).plan()
			if len(p.Granted) != 1 {
				t.Fatalf("granted %+v", p.Granted)
			}
			same(t, "since", tc.want, p.Granted[0].NeedSince.Time)
		})
	}
}
