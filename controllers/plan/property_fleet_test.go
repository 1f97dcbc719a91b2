package plan_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/hack/judge/definition"
)

// If everything is drawn at random, plans seldom grant anything. So half the situations of forAny
// are healthy fleets: most nodes need a reboot and may have one, and one or two features are set.

// features are the features that a fleet may have, each with what makes nodes use it.
var features = []struct {
	name string
	// does sets the feature.
	does func(t *rapid.T, s *situation)
	// granted reports whether the feature is set and influenced an entry.
	granted func(s plan.Snapshot, n *record.Node) bool
}{
	{"order", func(t *rapid.T, s *situation) {
		drawRings(t, "1", "2", "50%")(s.policies[0])
		if oneIn(t, 2, "the first ring is done") {
			s.done(t, "x")
		}
	}, func(s plan.Snapshot, _ *record.Node) bool { return len(s.Policy.Spec.Rings) > 0 }},
	{"a later ring", func(t *rapid.T, s *situation) {
		inRings("pool", ring("x", soaks(minutes(t, 0, 30, "soak"))))(s.policies[0])
		s.done(t, "x")
	}, func(s plan.Snapshot, n *record.Node) bool {
		return len(s.Policy.Spec.Rings) > 0 && ringOf(s.Policy, n) > 0
	}},
	{"topologyKey", func(_ *rapid.T, s *situation) { domains("pool")(s.policies[0]) }, func(s plan.Snapshot, _ *record.Node) bool {
		return s.Policy.Spec.TopologyKey() != ""
	}},
	{"spacing", func(t *rapid.T, s *situation) {
		spacing(10 * minute)(s.policies[0])
		lastReboot(-minutes(t, 5, 30, "last reboot"))(s.policies[0])
	}, func(s plan.Snapshot, _ *record.Node) bool {
		return s.Policy.Spec.Spacing() > 0 && s.Policy.Status.LastRebootAt != nil
	}},
	{"deadline", func(_ *rapid.T, s *situation) { deadline(130 * minute)(s.policies[0]) }, func(s plan.Snapshot, _ *record.Node) bool {
		return s.Policy.Spec.Deadline != nil
	}},
	{"deadline that ignores windows", func(t *rapid.T, s *situation) {
		deadline(time.Hour)(s.policies[0])
		ignoresWindows(s.policies[0])
		s.window = &window.State{OpensAt: evening.Add(minutes(t, 1, 60, "opens"))}
		s.window.Next = s.window.OpensAt
	}, func(s plan.Snapshot, n *record.Node) bool { return !s.Window.Open && !n.Urgent }},
	{"urgent requests", func(t *rapid.T, s *situation) {
		allowsUrgent(s.policies[0])
		for _, h := range s.hosts {
			if oneIn(t, 2, "urgent") {
				urgently(h)
			}
		}
	}, func(s plan.Snapshot, n *record.Node) bool { return record.Urgent(s.Policy, n) }},
	{"maxUptime", func(_ *rapid.T, s *situation) { maxUptime(s.policies[0]) }, func(s plan.Snapshot, _ *record.Node) bool {
		return s.Policy.Spec.MaxUptime != nil
	}},
	{"a limit of another policy", func(t *rapid.T, s *situation) { s.share(t, "workers", "rivals") }, func(s plan.Snapshot, _ *record.Node) bool {
		return s.Policy.Spec.Shared() != ""
	}},
	{"a limit that another policy shares", func(t *rapid.T, s *situation) { s.share(t, "rivals", "workers") }, func(s plan.Snapshot, _ *record.Node) bool {
		return s.Policy.Spec.Shared() == "" && s.Ledger.With != nil
	}},
	{"hooks", func(_ *rapid.T, s *situation) { hooked("example.com/a")(s.policies[0]) }, func(s plan.Snapshot, _ *record.Node) bool {
		return len(s.Policy.Spec.HooksOrDefault().Before) > 0
	}},
	{"hooks of runs", func(t *rapid.T, s *situation) {
		runHooked(s.policies[0])
		if !oneIn(t, 4, "not asked") {
			inRun(v1alpha1.RunBefore, -minute, []v1alpha1.AnnotationKey{setNoout}, func(h *v1alpha1.RunHooks) { h.Number = 1 })(s.policies[0])
			answered(setNoout, rapid.SampledFrom([]string{"1: true", "1: true", "1: false", "0: true"}).Draw(t, "answer"))(s.policies[0])
		}
	}, func(s plan.Snapshot, _ *record.Node) bool { return len(s.Policy.Spec.HooksOrDefault().RunBefore) > 0 }},
	{"gates", func(t *rapid.T, s *situation) {
		gated("must", "may-fail?")(s.policies[0])
		gatedByObject(s.policies[0])
		s.gates = nil
		for _, name := range gates.Names(&s.policies[0].Spec) {
			state := v1alpha1.GateClear
			if oneIn(t, 8, "firing") {
				state = v1alpha1.GateFiring
			}
			s.gates = append(s.gates, answer(name, state, "why", 0))
		}
	}, func(s plan.Snapshot, _ *record.Node) bool {
		return len(s.Policy.Spec.PrometheusGates()) > 0 && len(s.Policy.Spec.ObjectGates()) > 0
	}},
	{"pods that are waited for", func(t *rapid.T, s *situation) {
		waitsForPods(s.policies[0])
		for _, h := range s.hosts {
			if !oneIn(t, 4, "not answered") {
				replies(s.policies[0])(h)
			}
		}
	}, func(s plan.Snapshot, _ *record.Node) bool { return len(s.Policy.Spec.BlockingPods()) > 0 }},
	{"leaving gently", func(_ *rapid.T, s *situation) {
		s.policies[0].Spec.Drain = &v1alpha1.Drain{LeadTime: &v1alpha1.Duration{Duration: minute}, LoadBalancers: v1alpha1.LoadBalancersExclude}
	}, func(s plan.Snapshot, _ *record.Node) bool {
		return s.Policy.Spec.Drain != nil && s.Policy.Spec.Drain.LeadTime != nil
	}},
	{"a window that closes", func(t *rapid.T, s *situation) {
		closes := evening.Add(minutes(t, 4, 120, "closes"))
		s.window = &window.State{Open: true, ClosesAt: closes, Next: closes}
	}, func(s plan.Snapshot, _ *record.Node) bool { return s.Window.Open && !s.Window.ClosesAt.IsZero() }},
	{"reboots in progress", func(t *rapid.T, s *situation) {
		h := s.hosts[0]
		at := -minutes(t, 0, 20, "granted")
		grant(1, protocol.GrantActive, grantedAt(at))(h)
		s.policies[0].Status.Grants = nil // the feature may have been drawn twice
		holding(1, entry(h.name, 1))(s.policies[0])
		if oneIn(t, 2, "drains") {
			progress(1, protocol.PhaseDraining, phaseAt(at))(h)
		}
	}, func(s plan.Snapshot, _ *record.Node) bool { return len(s.Policy.Status.Grants) > 0 }},
}

// drawFleet draws a mostly healthy fleet.
func drawFleet(t *rapid.T) situation {
	s := situation{policies: []*v1alpha1.RebootPolicy{policy("workers", atMost(rapid.SampledFrom([]string{"1", "2", "3", "50%", "100%"}).Draw(t, "maxUnavailable")))}}
	for _, name := range someNodes[:rapid.IntRange(2, len(someNodes)).Draw(t, "nodes")] {
		h := needy(name, label("pool", rapid.SampledFrom([]string{"x", "y"}).Draw(t, "pool")), needsSince(minutes(t, 10, 150, "since")))
		if oneIn(t, 8, "trouble") {
			rapid.SampledFrom([]func(*host){
				notReady, cordoned, annotated(v1alpha1.AnnotationPaused, "true"), agentBlocking(`{"reason":"Inhibited"}`),
				progress(1, protocol.PhaseAborted, phaseAt(-minutes(t, 0, 6, "aborted")), failed(1, v1alpha1.ReasonDrainTimedOut, "")),
			}).Draw(t, "what")(h)
		}
		s.hosts = append(s.hosts, h)
	}
	for range rapid.IntRange(1, 2).Draw(t, "features") {
		features[rapid.IntRange(0, len(features)-1).Draw(t, "feature")].does(t, &s)
	}
	return s
}

// done marks the nodes of a pool as rebooted a while ago.
func (s *situation) done(t *rapid.T, pool string) {
	for i, h := range s.hosts {
		if h.node.Labels["pool"] == pool {
			s.hosts[i] = newHost(h.name, label("pool", pool))
			ended := metav1.NewTime(evening.Add(-minutes(t, 0, 40, "ended")))
			s.policies[0].Status.History = append(s.policies[0].Status.History, v1alpha1.PastReboot{
				Node: h.name, Result: v1alpha1.RebootSucceeded, GrantedAt: ended, EndedAt: ended,
			})
		}
	}
}

// share adds a policy for a pool, and makes one of the two share the limit of the other.
func (s *situation) share(t *rapid.T, name, with string) {
	if len(s.policies) == 1 {
		s.policies = append(s.policies, policy("rivals", atMost(rapid.SampledFrom([]string{"1", "2"}).Draw(t, "limit of rivals")), selects("pool", "y"), priority(1)))
	}
	for _, p := range s.policies {
		p.Spec.Concurrency.Shared = ""
		if p.Name == name {
			sharing(with)(p)
		}
	}
}

// TestDraw_GrantsWithEveryFeature checks that enough random situations grant something with each
// feature, because a property of grants proves nothing without grants.
func TestDraw_GrantsWithEveryFeature(t *testing.T) {
	const drawn, floor = 1000, 5
	snapshots := rapid.Custom(func(t *rapid.T) plan.Snapshot {
		_, snapshot := drawAny(t)
		return snapshot
	})
	granted := map[string]int{}
	for seed := range drawn { // also with -short: it takes a tenth of a second
		snapshot := snapshots.Example(seed)
		p := plan.Of(snapshot)
		for _, f := range features {
			for _, e := range p.Ledger.Granted {
				if f.granted(snapshot, nodeNamed(snapshot, e.Node)) {
					granted[f.name]++
					break
				}
			}
		}
	}
	for _, f := range features {
		if granted[f.name] < floor {
			t.Errorf("%d of %d situations grant something with %s, want %d at least", granted[f.name], drawn, f.name, floor)
		}
	}
	t.Logf("granted something with %v", granted)
}

// TestDraw_PoliciesAreAccepted checks that the API server accepts every policy that a fleet or a
// story begins with. Only drawSituation also draws policies that it refuses.
func TestDraw_PoliciesAreAccepted(t *testing.T) {
	crd, err := definition.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	accepted := func(t tester, policies []*v1alpha1.RebootPolicy) {
		t.Helper()
		for _, p := range policies {
			if err := crd.Refusal(ctx, p, p); err != nil {
				t.Fatalf("%v\n%+v", err, p)
			}
		}
	}
	for _, s := range sequences() {
		accepted(t, s.policies)
	}
	rapid.Check(t, func(t *rapid.T) {
		accepted(t, slices.Concat(drawFleet(t).policies, drawStory(t).policies, drawRollout(t).policies))
	})
}
