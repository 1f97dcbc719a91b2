package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

const active, over = protocol.GrantActive, protocol.GrantFinished

// TestReboots_Markers checks which nodes carry the pending taint, and which lose what a grant has
// left.
func TestReboots_Markers(t *testing.T) {
	annotation := withAnnotations(v1alpha1.AnnotationScaleDownDisabled)
	on := func(name string) record.Markers {
		return record.Markers{Node: name, Pending: corev1.TaintEffectPreferNoSchedule}
	}
	off := func(name string) record.Markers { return record.Markers{Node: name} }
	noPods := func(name string) record.Markers {
		return record.Markers{Node: name, Pending: corev1.TaintEffectNoSchedule}
	}
	gated, strict := policy("workers", waitsForPods), policy("workers", keepsPodsOff)
	softly, strictly := replies(gated, blocking("default/migrate-1")), replies(strict, blocking("default/migrate-1"))
	closed, short := window.State{OpensAt: evening.AddDate(0, 0, 1)}, window.State{Open: true, ClosesAt: evening.Add(minute)}
	cp := label(record.ControlPlaneLabels[0], "")
	rivals := []*v1alpha1.RebootPolicy{policy("workers"), policy("zoo")}
	cases := map[string]struct {
		situation situation
		want      []record.Markers
	}{
		"nodes that wait for their turn, the next one first": {
			one(policy("workers"), needy("a"), needy("b"), needy("c", needsSince(3*60*minute)), needy("d", needsSince(2*60*minute))),
			[]record.Markers{on("d"), on("a"), on("b")}, // c gets a grant
		},
		"nodes that have the taint already":  {one(policy("workers"), needy("a"), needy("b", pending)), nil},
		"nodes that need no reboot":          {one(policy("workers"), needy("a"), newHost("b")), nil},
		"nodes that no longer need a reboot": {one(policy("workers"), needy("a"), newHost("b", pending)), []record.Markers{off("b")}},
		"a granted node keeps its taint": {
			one(policy("workers", holding(1, entry("a", 1))), needy("a", pending, grant(1, active)), needy("b", pending)), nil,
		},
		"a node that is granted now keeps its taint":            {one(policy("workers"), needy("a", pending)), nil},
		"a policy without a pending taint":                      {one(policy("workers", noTaint), needy("a"), needy("b"), needy("c", pending)), []record.Markers{off("c")}},
		"a policy without a pending taint, and pods in the way": {one(policy("workers", waitsForPods, noTaint), needy("a", softly)), nil},
		"a policy without a pending taint but with NoSchedule": {
			one(policy("workers", keepsPodsOff, noTaint), needy("a", strictly), needy("b", strictly)),
			[]record.Markers{noPods("a")},
		},
		"another domain": {
			one(policy("workers", atMost("2"), domains("zone")), needy("a", label("zone", "a")), needy("b", label("zone", "b"))), []record.Markers{on("b")},
		},
		"another control-plane node": {one(policy("workers", atMost("2")), needy("a", cp), needy("b", cp)), []record.Markers{on("b")}},
		"control-plane nodes of two policies wait for a person, not for their turn": {
			one(policy("workers"), needy("a", cp, pending), newHost("b", cp, label("special", "yes"))).with(policy("special", selects("special", "yes"), priority(1))), []record.Markers{off("a")},
		},
		"the window is closed":       {one(policy("workers"), needy("a", pending), needy("b", pending)).in(closed), []record.Markers{off("a"), off("b")}},
		"the window is too short":    {one(policy("workers"), needy("a", pending), needy("b")).in(short), []record.Markers{off("a")}},
		"the policy is paused":       {one(policy("workers", paused(nil, "")), needy("a", pending)), []record.Markers{off("a")}},
		"the policy has halted":      {one(policy("workers", halted), needy("a", pending)), []record.Markers{off("a")}},
		"the policy has mode DryRun": {one(policy("workers", dryRun), needy("a", pending), needy("b", pending), needy("c")), []record.Markers{off("a"), off("b")}},
		"the limit is 0: the turn never comes": {
			one(policy("workers", atMost("0")), needy("a", pending), needy("b")), []record.Markers{off("a")},
		},
		"a node that an administrator has paused": {
			one(policy("workers"), needy("a"), needy("b", pending, annotated(v1alpha1.AnnotationPaused, "true"))), []record.Markers{off("b")},
		},
		"a node that an inhibitor blocks": {
			one(policy("workers"), needy("a"), needy("b", pending, agentBlocking(`{"reason":"Inhibited"}`))), []record.Markers{off("b")},
		},
		"two policies select it, reported by the first of them": {situation{policies: rivals, hosts: hosts(needy, "a", pending)}, []record.Markers{off("a")}},
		"two policies select it, not reported by the second":    {situation{policies: []*v1alpha1.RebootPolicy{rivals[1], rivals[0]}, hosts: hosts(needy, "a", pending)}, nil},
		"a node of another policy":                              {one(policy("workers"), newHost("a", pending)).with(policy("other", priority(1))), nil},
		"nodes that wait for pods, more than may be down, the next ones first": {
			one(policy("workers", atMost("2"), waitsForPods), needy("a", softly), needy("b", softly), needy("c", softly, needsSince(2*60*minute))),
			[]record.Markers{on("c"), on("a"), on("b")},
		},
		"nodes that wait for pods under the strictest rule": {one(strict, needy("a", strictly), needy("b", strictly)), []record.Markers{noPods("a"), on("b")}},
		"a node that waits for pods has an older taint":     {one(strict, needy("a", strictly, pending)), []record.Markers{noPods("a")}},
		"a node that waits for pods has the taint already":  {one(strict, needy("a", strictly, podsOff)), nil},
		"a node that waits for pods, and others come first": {
			one(strict, needy("a", strictly, podsOff), needy("b", strictly, needsSince(2*60*minute))), []record.Markers{noPods("b"), on("a")},
		},
		"a node that waits for pods under a weaker rule": {one(gated, needy("a", softly, podsOff)), []record.Markers{on("a")}},
		"a node that waits for pods, with both taints":   {one(gated, needy("a", softly, pending, podsOff)), []record.Markers{on("a")}},
		"a node that no longer waits for pods": {
			one(strict, needy("a", grant(1, active)), needy("b", replies(strict), podsOff), needy("c")), []record.Markers{on("b")},
		},
		"a node whose pods are unknown":                    {one(strict, needy("a", podsOff)), []record.Markers{off("a")}},
		"a node that waits for pods, the window is closed": {one(strict, needy("a", strictly, podsOff)).in(closed), []record.Markers{off("a")}},
		"a node that waits for pods, the policy is paused": {one(policy("workers", keepsPodsOff, paused(nil, "")), needy("a", strictly, podsOff)), []record.Markers{off("a")}},
		"a node that waits for pods, in mode DryRun":       {one(policy("workers", keepsPodsOff, dryRun), needy("a", strictly, podsOff)), []record.Markers{off("a")}},
		"a node that waits for pods, the limit is 0":       {one(policy("workers", keepsPodsOff, atMost("0")), needy("a", strictly)), nil},
		"nodes that wait for pods, as their ring allows": {
			one(policy("workers", atMost("3"), keepsPodsOff, inRings("ring", ring("x", ringAtMost("1")))),
				needy("a", strictly, label("ring", "x")), needy("b", strictly, label("ring", "x"))), []record.Markers{noPods("a"), on("b")},
		},
		"a granted node admits the pods of hooks": {
			one(policy("workers", keepsPodsOff, holding(1, entry("a", 1))), needy("a", podsOff, grant(1, active))), []record.Markers{on("a")},
		},
		"a node that is granted now admits the pods of hooks": {one(strict, needy("a", replies(strict), podsOff)), []record.Markers{on("a")}},
		"the maximum uptime of a node":                        {one(policy("workers", maxUptime), newHost("a")), []record.Markers{{Node: "a", Needs: record.Needs{MaxUptime: monthOfA}}}},
		"the maximum uptime of a node that waits for its turn": {
			one(policy("workers", maxUptime), needy("a", upFor(monthOfA)), needy("b")), []record.Markers{{Node: "b", Pending: corev1.TaintEffectPreferNoSchedule, Needs: record.Needs{MaxUptime: monthOfB}}},
		},
		"nodes that have the annotation already":     {one(policy("workers", maxUptime), newHost("a", upFor(monthOfA))), nil},
		"another maximum than before":                {one(policy("workers", maxUptime), newHost("a", upFor("24h0m0s"))), []record.Markers{{Node: "a", Needs: record.Needs{MaxUptime: monthOfA}}}},
		"a maximum that was removed":                 {one(policy("workers"), newHost("a", upFor(monthOfA))), []record.Markers{off("a")}},
		"conditions that ask for a reboot":           {one(policy("workers", watches), newHost("a")), []record.Markers{{Node: "a", Needs: record.Needs{Conditions: watched}}}},
		"conditions that no longer ask for a reboot": {one(policy("workers"), newHost("a", annotated(v1alpha1.AnnotationNodeConditions, watched))), []record.Markers{off("a")}},
		"conditions that nodes carry already":        {one(policy("workers", watches), newHost("a", annotated(v1alpha1.AnnotationNodeConditions, watched))), nil},
		"conditions of a granted node stay":          {one(policy("workers", watches, holding(1, entry("a", 1))), needy("a", grant(1, active))), nil},
		"a policy in mode DryRun":                    {one(policy("workers", maxUptime, dryRun), newHost("a")), []record.Markers{{Node: "a", Needs: record.Needs{MaxUptime: monthOfA}}}},
		"a granted node keeps its maximum":           {one(policy("workers", holding(1, entry("a", 1))), needy("a", upFor(monthOfA), grant(1, active))), nil},
		"two policies in conflict set no maximum":    {situation{policies: rivals, hosts: hosts(newHost, "a", upFor(monthOfA))}, []record.Markers{off("a")}},
		"annotations of a grant that ended before the grace": {
			one(policy("workers"), newHost("a", grant(1, over, annotation, grantedAt(-15*minute)))), []record.Markers{{Node: "a", RemoveAnnotations: true}},
		},
		"annotations of a grant that ended within the grace": {
			one(policy("workers"), newHost("a", grant(1, over, annotation, grantedAt(-15*minute+time.Second)))), nil,
		},
		"annotations of a grant that was cancelled within the grace": {
			one(policy("workers"), newHost("a", grant(1, protocol.GrantCancelled, annotation, grantedAt(-minute)))), nil,
		},
		"annotations after the policy's grace changed": {
			one(policy("workers", grace(3*minute)), newHost("a", grant(1, over, annotation, grantedAt(-3*minute)))), []record.Markers{{Node: "a", RemoveAnnotations: true}},
		},
		"annotations after the policy's grace was removed": {
			one(policy("workers", grace(0)), newHost("a", grant(1, over, annotation))), []record.Markers{{Node: "a", RemoveAnnotations: true}},
		},
		"annotations within the grace, of a node of two policies": {
			situation{policies: rivals, hosts: hosts(newHost, "a", grant(1, over, annotation))}, []record.Markers{{Node: "a", RemoveAnnotations: true}},
		},
		"annotations of an attempt that its agent gave up": {
			one(policy("workers"), needy("a", pending, grant(1, active, annotation, grantedAt(-30*minute)),
				progress(1, protocol.PhaseAborted, phaseAt(-15*minute), failed(9, v1alpha1.ReasonDrainTimedOut, "")))),
			[]record.Markers{{Node: "a", RemoveAnnotations: true}},
		},
		"annotations of an attempt that its agent gave up within the grace": {
			one(policy("workers"), needy("a", grant(1, active, annotation, grantedAt(-30*minute)),
				progress(1, protocol.PhaseAborted, phaseAt(-14*minute), failed(9, v1alpha1.ReasonDrainTimedOut, "")))), nil,
		},
		"annotations of an attempt whose agent has a clock days ahead": {
			one(policy("workers"), needy("a", pending, grant(1, active, annotation, grantedAt(-time.Hour)),
				progress(1, protocol.PhaseAborted, phaseAt(48*time.Hour), failed(9, v1alpha1.ReasonDrainTimedOut, "")))),
			[]record.Markers{{Node: "a", RemoveAnnotations: true}},
		},
		"the label for load balancers of a grant that is over": {
			one(policy("workers"), newHost("a", grant(1, over, excluded))), []record.Markers{{Node: "a", RemoveExclusion: true}},
		},
		"the remediation label of a grant that is over": {
			one(policy("workers"), newHost("a", grant(1, over, unremediated))), []record.Markers{{Node: "a", RemoveRemediation: true}},
		},
		"the remediation label of a reboot in progress": {
			one(policy("workers", holding(1, entry("a", 1))), needy("a", grant(1, active, unremediated), progress(1, protocol.PhaseRebooting), notReady)), nil,
		},
		"the remediation label of a machine that is not back in time": {
			one(policy("workers", holding(1, entry("a", 1))), needy("a", grant(1, active, unremediated), progress(1, protocol.PhaseRebooting), notReady)).at(time.Hour),
			[]record.Markers{{Node: "a", RemoveRemediation: true}},
		},
		"the remediation label of a machine that is late and Ready": {
			one(policy("workers", holding(1, entry("a", 1))), needy("a", grant(1, active, unremediated), progress(1, protocol.PhaseRebooting))).at(time.Hour), nil,
		},
		"the label for load balancers of a grant that is not over": {
			one(policy("workers", holding(1, entry("a", 1))), needy("a", grant(1, active, excluded))), nil,
		},
		"hooks of a grant that was never written on the node": {
			one(policy("workers", paused(nil, "")), needy("a", phase(1, v1alpha1.HooksBefore, 0))), []record.Markers{{Node: "a", RemoveHooks: true}},
		},
		"a label for hooks alone": {one(policy("workers"), newHost("a", label(v1alpha1.LabelAfterReboot, "true"))), []record.Markers{{Node: "a", RemoveHooks: true}}},
		"hooks of a grant that is in the ledger": {
			one(policy("workers", holding(1, entry("a", 1))), needy("a", phase(1, v1alpha1.HooksBefore, 0), label(v1alpha1.LabelBeforeReboot, "true"))), nil,
		},
		"annotations of a node whose entry is still in the ledger": {
			one(policy("workers", atMost("0"), holding(1, entry("a", 1))), needy("a", grant(1, active, annotation))), nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			same(t, "markers", tc.want, tc.situation.plan().Markers, cmpopts.EquateEmpty())
		})
	}
}

// TestUngovernedMarkers checks that a node that no policy governs carries no markers, unless it is
// still in a reboot.
func TestUngovernedMarkers(t *testing.T) {
	annotation := withAnnotations(v1alpha1.AnnotationDoNotDisrupt)
	for name, tc := range map[string]struct {
		policies []v1alpha1.RebootPolicy
		host     *host
		want     []record.Markers
	}{
		"nobody's":                                {nil, needy("a", pending), []record.Markers{{Node: "a"}}},
		"without a policy, with annotations":      {nil, newHost("a", grant(1, over, annotation)), []record.Markers{{Node: "a", RemoveAnnotations: true}}},
		"without a policy, with hooks":            {nil, newHost("a", label(v1alpha1.LabelBeforeReboot, "true")), []record.Markers{{Node: "a", RemoveHooks: true}}},
		"without a policy, with nothing":          {nil, needy("a"), nil},
		"without a policy, with a maximum uptime": {nil, newHost("a", upFor(monthOfA)), []record.Markers{{Node: "a"}}},
		"without a policy, during its reboot":     {nil, needy("a", pending, grant(1, active, annotation)), nil},
		"of a policy that is being deleted":       {values([]*v1alpha1.RebootPolicy{policy("workers", deleted)}), needy("a", pending), []record.Markers{{Node: "a"}}},
		"somebody's":                              {values([]*v1alpha1.RebootPolicy{policy("workers")}), needy("a", pending), nil},
		"of two policies":                         {values([]*v1alpha1.RebootPolicy{policy("a"), policy("b")}), needy("a", pending), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan.UngovernedMarkers(governor.Of(tc.policies), []*record.Node{new(tc.host.view())})
			same(t, "markers", tc.want, got, cmpopts.EquateEmpty())
		})
	}
}

// TestWithPending checks that other taints stay, in their order, including the same key with an
// effect that the manager never sets.
func TestWithPending(t *testing.T) {
	now := metav1.NewTime(evening)
	theirs := []corev1.Taint{
		{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoExecute, TimeAdded: &now},
		{Key: v1alpha1.TaintPending, Value: "mine", Effect: corev1.TaintEffectNoExecute},
	}
	ours := corev1.Taint{Key: v1alpha1.TaintPending, Effect: corev1.TaintEffectPreferNoSchedule}
	strict := corev1.Taint{Key: v1alpha1.TaintPending, Effect: corev1.TaintEffectNoSchedule}
	both, strictly := []corev1.Taint{theirs[0], theirs[1], ours}, []corev1.Taint{theirs[0], theirs[1], strict}
	for name, tc := range map[string]struct {
		have   []corev1.Taint
		effect corev1.TaintEffect
		want   []corev1.Taint
	}{
		"on":                       {theirs, ours.Effect, both},
		"on again":                 {both, ours.Effect, both},
		"stricter":                 {both, strict.Effect, strictly},
		"softer":                   {strictly, ours.Effect, both},
		"off":                      {[]corev1.Taint{theirs[0], ours, theirs[1]}, "", theirs},
		"off, with both effects":   {[]corev1.Taint{theirs[0], ours, theirs[1], strict}, "", theirs},
		"off again":                {theirs, "", theirs},
		"off, and nothing is left": {[]corev1.Taint{ours}, "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			have := append([]corev1.Taint(nil), tc.have...)
			same(t, "taints", tc.want, record.WithPending(tc.have, tc.effect), cmpopts.EquateEmpty())
			same(t, "the taints that were given", have, tc.have)
		})
	}
}

// TestNode_AutoscalerAnnotations checks that an administrator's annotation stays, with any value.
// The manager's is removed with the grant, unless somebody has changed it since.
func TestNode_AutoscalerAnnotations(t *testing.T) {
	const scaleDown, disrupt = v1alpha1.AnnotationScaleDownDisabled, v1alpha1.AnnotationDoNotDisrupt
	both := []string{scaleDown, disrupt}
	for name, tc := range map[string]struct {
		node        *host
		set, remove []string
	}{
		"a node without a policy":  {newHost("a"), both, nil},
		"an administrator's true":  {newHost("a", annotated(scaleDown, "true")), []string{disrupt}, nil},
		"an administrator's false": {newHost("a", annotated(disrupt, "false")), []string{scaleDown}, nil},
		"under a grant":            {newHost("a", grant(1, active, withAnnotations(both...)), annotated(scaleDown, "true"), annotated(disrupt, "true")), both, both},
		"under a grant, next to an administrator's": {
			newHost("a", grant(1, active, withAnnotations(disrupt)), annotated(scaleDown, "true"), annotated(disrupt, "true")), []string{disrupt}, []string{disrupt},
		},
		"under a grant, and somebody changed it": {
			newHost("a", grant(1, active, withAnnotations(both...)), annotated(scaleDown, "false"), annotated(disrupt, "true")), []string{disrupt}, []string{disrupt},
		},
		"under a grant, and somebody removed it": {newHost("a", grant(1, active, withAnnotations(both...)), annotated(disrupt, "true")), both, []string{disrupt}},
		"a grant that names another annotation": {
			newHost("a", grant(1, active, withAnnotations("example.com/keep")), annotated("example.com/keep", "true")), both, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := tc.node.view()
			same(t, "to set", tc.set, n.AnnotationsToSet(), cmpopts.EquateEmpty())
			same(t, "to remove", tc.remove, n.AnnotationsToRemove(), cmpopts.EquateEmpty())
		})
	}
}

// TestNode_Exclusion checks that somebody else's label stays, with any value. The manager's is
// removed with the grant, unless somebody has changed it since.
func TestNode_Exclusion(t *testing.T) {
	const key, ours = v1alpha1.LabelExcludeFromLoadBalancers, v1alpha1.ExcludedByOperator
	for name, tc := range map[string]struct {
		node          *host
		sets, removes bool
	}{
		"a node without a policy":                           {newHost("a"), true, false},
		"an administrator's":                                {newHost("a", label(key, "true")), false, false},
		"an administrator's label with the manager's value": {newHost("a", label(key, ours)), false, false},
		"under a grant":                                     {newHost("a", grant(1, active, excluded), label(key, ours)), true, true},
		"under a grant that has not set it":                 {newHost("a", grant(1, active), label(key, ours)), false, false},
		"under a grant, and somebody changed it":            {newHost("a", grant(1, active, excluded), label(key, "")), false, false},
		"under a grant, and somebody removed it":            {newHost("a", grant(1, active, excluded)), true, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := tc.node.view()
			if sets := n.SetsExclusion(policy("workers", excludes)); sets != tc.sets || n.RemovesExclusion() != tc.removes {
				t.Errorf("sets %t, removes %t", sets, n.RemovesExclusion())
			}
			if n.SetsExclusion(policy("workers")) {
				t.Error("it is set though the policy keeps nodes in load balancers")
			}
		})
	}
}

// TestNode_Remediation checks that somebody else's label stays. The manager's is removed with the
// grant, unless somebody has changed it since.
func TestNode_Remediation(t *testing.T) {
	const key = v1alpha1.LabelExcludeFromRemediation
	for name, tc := range map[string]struct {
		node          *host
		sets, removes bool
	}{
		"a node without a policy":                {newHost("a"), true, false},
		"an administrator's":                     {newHost("a", label(key, "true")), false, false},
		"under a grant":                          {newHost("a", grant(1, active, unremediated), label(key, "true")), true, true},
		"under a grant that has not set it":      {newHost("a", grant(1, active), label(key, "true")), false, false},
		"under a grant, and somebody changed it": {newHost("a", grant(1, active, unremediated), label(key, "")), false, false},
		"under a grant, and somebody removed it": {newHost("a", grant(1, active, unremediated)), true, false},
	} {
		if n := tc.node.view(); n.SetsRemediation() != tc.sets || n.RemovesRemediation() != tc.removes {
			t.Errorf("%s: sets %t, removes %t", name, n.SetsRemediation(), n.RemovesRemediation())
		}
	}
}

// monthOfA and monthOfB are the uptimes of two nodes under maxUptime: 720 hours minus a share of
// the last 72 hours, which the first 32 bits of the SHA-256 of their names select.
const monthOfA, monthOfB = "663h1m16s", "702h31m23s"

// watched is the annotation of nodes under watches.
const watched = `[{"type":"KernelDeadlock","for":"10m0s"}]`

func upFor(most string) func(*host) { return annotated(v1alpha1.AnnotationMaxUptime, most) }
