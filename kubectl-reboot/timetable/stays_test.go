package timetable_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	. "github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/timetable"
)

// TestStays tests that a person who asks for the reboot of a node hears what will keep it from being
// rebooted, and nothing if it only waits for its turn or its window.
func TestStays(t *testing.T) {
	unreported := func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[:1] }
	windows := func(n *corev1.Node) { n.Labels[corev1.LabelOSStable] = "windows" }
	dryRun := Spec(func(s *v1alpha1.RebootPolicySpec) { s.Mode = v1alpha1.ModeDryRun })
	pause := Spec(func(s *v1alpha1.RebootPolicySpec) { s.Pause = &v1alpha1.Pause{Reason: "incident"} })
	for name, tc := range map[string]struct {
		policy v1alpha1.RebootPolicy
		node   corev1.Node
		want   []string
	}{
		"a node that can be rebooted":    {Policy("w"), Node("n1", "w"), nil},
		"a node that needs it already":   {Policy("w"), Node("n1", "w", Needs(time.Hour)), nil},
		"a closed window":                {Policy("w", Weeknights), Node("n1", "w"), nil},
		"no policy":                      {Policy("w"), Node("n1", "other"), []string{"n1 NoPolicy: no RebootPolicy selects this node"}},
		"a paused node":                  {Policy("w"), Node("n1", "w", Annotated(v1alpha1.AnnotationPaused, "disk swap")), []string{"n1 NodePaused: the node is paused: disk swap; to resume: kubectl annotate node n1 reboot-operator.io/paused-"}},
		"a paused policy":                {Policy("w", pause), Node("n1", "w"), []string{"n1 Paused: policy w is paused: incident"}},
		"a policy that only tries":       {Policy("w", dryRun), Node("n1", "w"), []string{"n1 DryRun: policy w is in mode DryRun"}},
		"a limit of zero":                {Policy("w", AtMost("0")), Node("n1", "w"), []string{"n1 BudgetExhausted: maxUnavailable is 0: no node may be rebooted"}},
		"no agent":                       {Policy("w"), Node("n1", "w", unreported), []string{"n1 AgentsMissing: no working agent has reported from the node"}},
		"an agent that is gone":          {Policy("w", AgentsMissing("n1")), Node("n1", "w"), []string{"n1 AgentsMissing: no working agent has reported from the node"}},
		"Windows":                        {Policy("w"), Node("n1", "w", windows), []string{"n1 AgentsMissing: agents cannot run on Windows"}},
		"a node that nobody asked about": {Policy("w"), Node("n2", "other"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, s := range timetable.Stays(fleet.New([]v1alpha1.RebootPolicy{tc.policy}, []corev1.Node{tc.node}, Now), []string{"n1"}) {
				got = append(got, s.Node+" "+string(s.Reason)+": "+s.Message)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
