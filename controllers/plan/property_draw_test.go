package plan_test

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// Random situations are small and dense, with few names, numbers, boots and instants, so that they
// interact.

var (
	someNodes    = []string{"a", "b", "c", "d", "e", "f"}
	somePolicies = []string{"workers", "rivals", "others"}
)

// oneIn returns true once in n times. It shrinks to false.
func oneIn(t *rapid.T, n int, label string) bool { return rapid.IntRange(0, n-1).Draw(t, label) == n-1 }

// drawInstant draws a time in the last hour, or one in the future from a wrong clock.
func drawInstant(t *rapid.T, label string) metav1.Time {
	if oneIn(t, 16, "clock ahead") {
		return metav1.NewTime(evening.Add(rapid.SampledFrom([]time.Duration{30 * time.Minute, 26 * time.Hour}).Draw(t, "ahead")))
	}
	return metav1.NewTime(evening.Add(time.Duration(rapid.IntRange(-40, 1).Draw(t, label)) * time.Minute))
}

func drawBoot(t *rapid.T, node string) string {
	return rapid.SampledFrom([]string{node + "-boot-1", node + "-boot-1", node + "-boot-2"}).Draw(t, "boot")
}

// drawSituation draws a cluster in any state, reachable or not.
func drawSituation(t *rapid.T) situation {
	s := situation{}
	for _, name := range somePolicies[:rapid.IntRange(1, len(somePolicies)).Draw(t, "policies")] {
		s.policies = append(s.policies, drawPolicy(t, name))
	}
	for _, name := range someNodes[:rapid.IntRange(0, len(someNodes)).Draw(t, "nodes")] {
		s.hosts = append(s.hosts, drawHost(t, name))
	}
	if oneIn(t, 3, "window") {
		s.window = drawWindow(t)
	}
	if u := s.policies[0].Spec.UrgentOrDefault().All; u != nil && evening.Before(u.Until.Time) {
		s.window = endsUrgently(s.window, u.Until.Time)
	}
	if oneIn(t, 4, "gates") {
		s.gates = drawGates(t, s.policies[0])
	}
	return s
}

// drawGates gives a policy gates, and draws results for some of them.
func drawGates(t *rapid.T, p *v1alpha1.RebootPolicy) []v1alpha1.GateStatus {
	gated("must", "may-fail?")(p)
	gatedByObject(p)
	var reported []v1alpha1.GateStatus
	states := []v1alpha1.GateState{v1alpha1.GateClear, v1alpha1.GateClear, v1alpha1.GateFiring, v1alpha1.GateNotReady, v1alpha1.GateUnreachable}
	for _, name := range gates.Names(&p.Spec) {
		if !oneIn(t, 5, "not asked") {
			reported = append(reported, answer(name, rapid.SampledFrom(states).Draw(t, "state"), "why", 0))
		}
	}
	return reported
}

// drawWindow draws windows that stay open or closed until their next change.
func drawWindow(t *rapid.T) *window.State {
	changes := evening.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "changes")) * time.Minute)
	w := window.State{Open: oneIn(t, 2, "open"), Next: changes}
	if w.Open {
		w.ClosesAt = changes
		return &w
	}
	w.OpensAt, w.Blackout = changes, oneIn(t, 2, "blackout")
	return &w
}

// endsUrgently adds to the windows that spec.urgent ends at a given time.
func endsUrgently(w *window.State, until time.Time) *window.State {
	if w == nil {
		w = &window.State{Open: true, Always: true}
	}
	w.Urgent, w.Next = w.Open, timing.Earliest(w.Next, until)
	return w
}

// drawRunHooks gives a policy hooks before or after its runs, and draws their stage.
func drawRunHooks(t *rapid.T, p *v1alpha1.RebootPolicy) {
	runHooked(p)
	switch rapid.IntRange(0, 3).Draw(t, "of") {
	case 1:
		p.Spec.Hooks.RunBefore = nil
	case 2:
		p.Spec.Hooks.RunAfter = nil
	}
	stages := []v1alpha1.RunStage{"", v1alpha1.RunBefore, v1alpha1.RunRunning, v1alpha1.RunIdle, v1alpha1.RunAfter}
	stage := rapid.SampledFrom(stages).Draw(t, "stage")
	if stage == "" {
		return
	}
	asked := []v1alpha1.AnnotationKey{setNoout, unsetNoout}[:rapid.IntRange(1, 2).Draw(t, "asked")]
	inRun(stage, -minutes(t, 0, 70, "since"), asked)(p)
	if oneIn(t, 3, "failed") {
		notBegun(p.Status.Run.Hooks)
	}
	for _, key := range asked {
		answered(key, rapid.SampledFrom([]string{"7: true", "7: true", "6: true", "7: failed: why", "true", ""}).Draw(t, "answer"))(p)
	}
}

func drawPolicy(t *rapid.T, name string) *v1alpha1.RebootPolicy {
	p := policy(name, atMost(rapid.SampledFrom([]string{"1", "2", "3", "0", "25%", "50%", "0%", "many"}).Draw(t, "maxUnavailable")))
	p.Spec.Priority = int32(rapid.IntRange(0, 2).Draw(t, "priority"))
	if oneIn(t, 4, "shares") {
		sharing(rapid.SampledFrom(somePolicies).Draw(t, "shares with"))(p)
		if oneIn(t, 2, "without its own limit") {
			p.Spec.Concurrency.MaxUnavailable = nil
		}
	}
	if oneIn(t, 3, "domains") {
		domains("pool")(p)
	}
	if oneIn(t, 2, "selects") {
		selects("pool", rapid.SampledFrom([]string{"x", "y"}).Draw(t, "pool"))(p)
	}
	for _, change := range []struct {
		label string
		does  func(*v1alpha1.RebootPolicy)
	}{
		{"paused", paused(nil, "")},
		{"paused for a while", paused(&metav1.Time{Time: evening.Add(minute)}, "")},
		{"dry run", dryRun},
		{"halted", halted},
		{"waits for pods", waitsForPods},
		{"keeps pods off", keepsPodsOff},
		{"reboots anyway", rebootsAnyway},
		{"allows urgent requests", allowsUrgent},
		{"has a maximum uptime", maxUptime},
		{"names conditions", watches},
		{"no grace", grace(0)},
		{"a short grace", grace(3 * minute)},
		{"spacing", spacing(10 * minute)},
		{"deadline", deadline(130 * minute)},
		{"first batch", firstBatch("1", 10*minute)},
		{"resume", resume("fixed")},
		{"deleted", deleted},
	} {
		if oneIn(t, 12, change.label) {
			change.does(p)
		}
	}
	if oneIn(t, 6, "urgent") {
		ignored := []v1alpha1.UrgentIgnore{"Pause", "Windows", "Blackouts"}[:rapid.IntRange(1, 3).Draw(t, "ignored")]
		urgent(evening.Add(minutes(t, -5, 5, "urgent until")), ignored...)(p)
	}
	if p.Spec.Deadline != nil && oneIn(t, 2, "ignores windows") {
		ignoresWindows(p)
	}
	if oneIn(t, 3, "rings") {
		drawRings(t, "0", "1", "2", "50%", "many")(p)
	}
	for _, node := range someNodes {
		if oneIn(t, 8, "past") {
			ended := drawInstant(t, "ended")
			past := v1alpha1.PastReboot{Node: node, Ring: "x", Result: v1alpha1.RebootSucceeded, GrantedAt: ended, EndedAt: ended}
			if oneIn(t, 4, "lost") {
				past.Result, past.Reason = v1alpha1.RebootLost, v1alpha1.ReasonNodeGoneInReboot
			}
			p.Status.History = append(p.Status.History, past)
		}
	}
	if oneIn(t, 3, "hooks") {
		keys := []v1alpha1.AnnotationKey{"example.com/a", "example.com/b"}
		p.Spec.Hooks = &v1alpha1.Hooks{
			Before: keys[:rapid.IntRange(0, 2).Draw(t, "before")], After: keys[:rapid.IntRange(0, 2).Draw(t, "after")],
			Timeout: &v1alpha1.Duration{Duration: 20 * time.Minute},
		}
	}
	if oneIn(t, 4, "hooks of runs") {
		drawRunHooks(t, p)
	}
	for _, node := range append(someNodes, "gone") {
		if oneIn(t, 5, "entry") {
			e := v1alpha1.LedgerEntry{Node: node, Seq: int64(rapid.IntRange(1, 6).Draw(t, "seq")), BootID: drawBoot(t, node), At: drawInstant(t, "granted")}
			if oneIn(t, 3, "rebooting") {
				e.RebootingAt, e.Ring = new(drawInstant(t, "rebooting since")), "x"
			}
			if oneIn(t, 8, "withdrawn") {
				e.WithdrawnAt = &e.At
			}
			if oneIn(t, 6, "of a policy that shares the limit") {
				e.Policy = rapid.SampledFrom(somePolicies).Draw(t, "granted by")
			}
			p.Status.Grants = append(p.Status.Grants, e)
			p.Status.Seq = max(p.Status.Seq, e.Seq)
		}
	}
	p.Status.Seq += int64(rapid.IntRange(0, 2).Draw(t, "more"))
	if oneIn(t, 3, "reboots") {
		p.Status.LastRebootAt = new(drawInstant(t, "last reboot"))
	}
	p.Status.Limit = int32(rapid.IntRange(0, 3).Draw(t, "limit"))
	return p
}

// drawRings orders nodes by their pools.
func drawRings(t *rapid.T, limits ...string) func(*v1alpha1.RebootPolicy) {
	var rings []v1alpha1.Ring
	for _, name := range []string{"x", "y"}[:rapid.IntRange(1, 2).Draw(t, "rings")] {
		r := ring(name, soaks(time.Duration(rapid.IntRange(0, 30).Draw(t, "soak"))*minute))
		if oneIn(t, 2, "limit of the ring") {
			ringAtMost(rapid.SampledFrom(limits).Draw(t, "at most"))(&r)
		}
		rings = append(rings, r)
	}
	return inRings("pool", rings...)
}

func drawHost(t *rapid.T, name string) *host {
	machine := needy
	if oneIn(t, 4, "needs nothing") {
		machine = newHost
	}
	h := machine(name, bootID(drawBoot(t, name)), needsSince(time.Duration(rapid.IntRange(1, 3).Draw(t, "since"))*time.Hour))
	for _, o := range []struct {
		in     int
		label  string
		option func(*host)
	}{
		{2, "pool x", label("pool", "x")},
		{2, "pool y", label("pool", "y")},
		{4, "control plane", label(record.ControlPlaneLabels[0], "")},
		{8, "not Ready", notReady},
		{6, "cordoned", cordoned},
		{10, "deleting", deleting},
		{10, "no boot ID", bootID("")},
		{10, "paused", annotated(v1alpha1.AnnotationPaused, "true")},
		{10, "blocked", agentBlocking(`{"reason":"Inhibited"}`)},
		{10, "conflicts", agentBlocking(`{"reason":"Inhibited"},{"reason":"CoordinatorConflict"}`)},
		{4, "pending", pending},
		{8, "keeps pods off", podsOff},
		{6, "announces a maintenance", announcing(v1alpha1.EventRebootGranted)},
		{8, "has a maintenance of another program", announcing("Theirs")},
		{4, "has a maximum uptime", upFor("700h0m0s")},
		{4, "has conditions that ask", annotated(v1alpha1.AnnotationNodeConditions, watched)},
		{6, "urgent", urgently},
		{15, "being scaled down", tainted("ToBeDeletedByClusterAutoscaler", corev1.TaintEffectNoSchedule)},
		{5, "reports", notReportedBack(0)},
		{8, "is in a maintenance by another program", maintained("Theirs", 0)},
		{5, "is back", rebooted(time.Duration(rapid.IntRange(-3, 1).Draw(t, "ready"))*minute, time.Duration(rapid.IntRange(-3, 1).Draw(t, "reported"))*minute)},
		{12, "is back, its kubelet's clock is ahead", rebooted(20*minute, 0)},
		{12, "is back, its agent's clock is ahead", rebooted(0, 20*minute)},
		{6, "keeps a pod", replies(policy("workers"), kept("default/bare", ""))},
		{6, "guards a pod", replies(policy("workers"), guarded("default/db-0", ""))},
		{6, "is blocked", replies(policy("workers", waitsForPods), blocking("default/migrate-1"))},
		{6, "is blocked, and keeps others off", replies(policy("workers", keepsPodsOff), blocking("default/migrate-1"))},
		{6, "is not blocked", replies(policy("workers", waitsForPods))},
		{10, "asked", annotated(v1alpha1.AnnotationPreflight, gates.PodsOf(policy("workers")).Preflight())},
		{4, "failed", nodeCondition(v1alpha1.NodeRebootFailed, corev1.ConditionTrue, 0)},
		{5, "reported", nodeCondition(v1alpha1.NodeRebootPermitted, corev1.ConditionFalse, 0)},
	} {
		if oneIn(t, o.in, o.label) {
			o.option(h)
		}
	}
	drawRecord(t, h)
	drawHooks(t, h)
	return h
}

func drawRecord(t *rapid.T, h *host) {
	switch rapid.IntRange(0, 5).Draw(t, "grant") {
	case 0, 1:
	case 2:
		annotate(h.node, v1alpha1.AnnotationGrant, "?")
	default:
		annotate(h.node, v1alpha1.AnnotationGrant, protocol.Grant{
			Policy: rapid.SampledFrom(append(somePolicies, "gone")).Draw(t, "by"), Seq: int64(rapid.IntRange(1, 6).Draw(t, "seq")),
			BootID: drawBoot(t, h.name), At: drawInstant(t, "published"),
			State:       rapid.SampledFrom([]protocol.GrantState{protocol.GrantActive, protocol.GrantCancelled, protocol.GrantFinished}).Draw(t, "state"),
			Reason:      rapid.SampledFrom([]v1alpha1.Reason{"", v1alpha1.ReasonAgentSilent, v1alpha1.ReasonHookFailed}).Draw(t, "reason"),
			Annotations: []string{v1alpha1.AnnotationDoNotDisrupt}[:rapid.IntRange(0, 1).Draw(t, "annotations")],
			Excluded:    oneIn(t, 4, "excluded"), Unremediated: oneIn(t, 4, "unremediated"),
		}.String())
		if oneIn(t, 2, "annotated") {
			annotate(h.node, v1alpha1.AnnotationDoNotDisrupt, record.AutoscalerValue)
		}
	}
	switch rapid.IntRange(0, 5).Draw(t, "progress") {
	case 0, 1:
	case 2:
		annotate(h.node, v1alpha1.AnnotationProgress, "?")
	default:
		annotate(h.node, v1alpha1.AnnotationProgress, protocol.Progress{
			Seq: int64(rapid.IntRange(1, 6).Draw(t, "seq")), BootID: drawBoot(t, h.name), At: drawInstant(t, "began"),
			Phase: rapid.SampledFrom([]protocol.Phase{
				protocol.PhaseDraining, protocol.PhaseRebooting, protocol.PhaseAborted,
			}).Draw(t, "phase"),
			Failures: int32(rapid.IntRange(0, 2).Draw(t, "failures")), Cordoned: true,
		}.String())
	}
}

func drawHooks(t *rapid.T, h *host) {
	for _, key := range []string{"example.com/a", "example.com/b"} {
		if oneIn(t, 2, "answer") {
			annotate(h.node, key, rapid.SampledFrom([]string{"true", "false", "failed: no", "yes"}).Draw(t, key))
		}
	}
	switch rapid.IntRange(0, 3).Draw(t, "phase of hooks") {
	case 2:
		annotate(h.node, v1alpha1.AnnotationHooks, "?")
	case 3:
		annotate(h.node, v1alpha1.AnnotationHooks, protocol.HookPhase{
			Policy: rapid.SampledFrom(append(somePolicies, "", "gone")).Draw(t, "asked by"),
			Seq:    int64(rapid.IntRange(1, 6).Draw(t, "seq")), BootID: drawBoot(t, h.name), At: drawInstant(t, "began"),
			Stage: rapid.SampledFrom([]v1alpha1.HookStage{v1alpha1.HooksBefore, v1alpha1.HooksAfter}).Draw(t, "stage"),
			Hooks: []v1alpha1.AnnotationKey{"example.com/a", "example.com/b"}[:rapid.IntRange(0, 2).Draw(t, "hooks")],
		}.String())
	}
}

// String prints a situation if a property fails.
func (s situation) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "window %+v\n", s.window)
	for _, p := range s.policies {
		fmt.Fprintf(&text, "policy %s: deleted %v, spec %+v, status %+v\n", p.Name, p.DeletionTimestamp, p.Spec, p.Status)
	}
	for _, h := range s.hosts {
		fmt.Fprintf(&text, "node %s on %s: %v %v, %s\n", h.name, h.node.Status.NodeInfo.BootID, h.node.Labels, h.node.Annotations, h.describe())
	}
	return text.String()
}

// drawRefused draws which writes about entries the API server refuses, and since when.
func drawRefused(t *rapid.T, entries []v1alpha1.LedgerEntry) map[string]underway.Refusal {
	refused := map[string]underway.Refusal{}
	for _, e := range entries {
		if oneIn(t, 4, "refused") {
			since := rapid.SampledFrom([]time.Duration{0, minute, 5 * minute, time.Hour}).Draw(t, "since")
			refused[e.Node] = underway.Refusal{Answer: "denied", Since: evening.Add(-since), At: evening}
		}
	}
	return refused
}
