package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/governor"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// situation is a snapshot in the terms of the tables. Its first policy decides, and has no windows
// unless the case sets some.
type situation struct {
	policies      []*v1alpha1.RebootPolicy
	hosts         []*host
	window        *window.State
	windowInvalid string
	gatesInvalid  string
	gates         []v1alpha1.GateStatus
	now           time.Time
}

func (s situation) snapshot() plan.Snapshot {
	snapshot := plan.Snapshot{Now: s.now, Policy: s.policies[0], WindowInvalid: s.windowInvalid, GatesInvalid: s.gatesInvalid, Gates: s.gates, Window: window.State{Open: true, Always: true}}
	if s.now.IsZero() {
		snapshot.Now = evening
	}
	if s.window != nil {
		snapshot.Window = *s.window
	}
	snapshot.Governor = governor.Of(values(s.policies))
	snapshot.Ledger = snapshot.Governor.Ledgers.For(snapshot.Policy)
	for _, h := range s.hosts {
		snapshot.Nodes = append(snapshot.Nodes, new(h.view()))
	}
	return snapshot
}

func (s situation) plan() plan.Plan { return plan.Of(s.snapshot()) }

// same compares a part of a plan with the expected value.
func same(t *testing.T, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// decided returns the decision about a node, or the zero value.
func decided(p plan.Plan, node string) plan.Decision {
	for _, d := range p.Decisions {
		if d.Node == node {
			return d
		}
	}
	return plan.Decision{}
}

// one returns a situation of one policy and its nodes.
func one(p *v1alpha1.RebootPolicy, hosts ...*host) situation {
	return situation{policies: []*v1alpha1.RebootPolicy{p}, hosts: hosts}
}

// with adds other policies to the situation, and in adds a window.
func (s situation) with(policies ...*v1alpha1.RebootPolicy) situation {
	s.policies = append(s.policies, policies...)
	return s
}

func (s situation) in(w window.State) situation {
	s.window = &w
	return s
}

// at sets the time, counted from the evening.
func (s situation) at(d time.Duration) situation {
	s.now = evening.Add(d)
	return s
}

// options returns a list of changes to a host or a policy.
func options[T any](list ...func(*T)) []func(*T) { return list }

// holding puts entries into the ledger of a policy, whose highest number is seq.
func holding(seq int64, entries ...v1alpha1.LedgerEntry) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Status.Seq = seq
		p.Status.Grants = append(p.Status.Grants, entries...)
	}
}

// entry returns the ledger entry of a node for its first boot.
func entry(node string, seq int64) v1alpha1.LedgerEntry {
	return v1alpha1.LedgerEntry{Node: node, Seq: seq, BootID: node + "-boot-1", At: metav1.NewTime(evening)}
}

// grant shows a grant on the node: of policy workers, for this boot, from now. mods change that.
func grant(seq int64, state protocol.GrantState, mods ...func(*protocol.Grant)) func(*host) {
	return func(h *host) {
		g := protocol.Grant{Policy: "workers", Seq: seq, BootID: h.name + "-boot-1", State: state, At: metav1.NewTime(evening)}
		for _, m := range mods {
			m(&g)
		}
		annotate(h.node, v1alpha1.AnnotationGrant, g.String())
	}
}

// underWay puts the node into its reboot, under grant 1.
func underWay(h *host) {
	grant(1, protocol.GrantActive)(h)
	progress(1, protocol.PhaseRebooting)(h)
}

// progress shows the agent's progress on the node: in this boot, from now, cordoned by the agent.
// mods change that.
func progress(seq int64, phase protocol.Phase, mods ...func(*protocol.Progress)) func(*host) {
	return func(h *host) {
		p := protocol.Progress{Seq: seq, Phase: phase, BootID: h.name + "-boot-1", At: metav1.NewTime(evening)}
		for _, m := range mods {
			m(&p)
		}
		annotate(h.node, v1alpha1.AnnotationProgress, p.String())
	}
}

// phase puts the node into a phase of hooks, since a time counted from the evening. Policy workers
// runs hook example.com/a in this boot for stage before, or in the next one for stage after. mods
// change that.
func phase(seq int64, stage v1alpha1.HookStage, since time.Duration, mods ...func(*protocol.HookPhase)) func(*host) {
	return func(h *host) {
		boot := map[v1alpha1.HookStage]string{v1alpha1.HooksBefore: "-boot-1", v1alpha1.HooksAfter: "-boot-2"}[stage]
		p := protocol.HookPhase{
			Policy: "workers", Seq: seq, BootID: h.name + boot, Stage: stage,
			Hooks: []v1alpha1.AnnotationKey{"example.com/a"}, At: metav1.NewTime(evening.Add(since)),
		}
		for _, m := range mods {
			m(&p)
		}
		annotate(h.node, v1alpha1.AnnotationHooks, p.String())
	}
}

// askedBy makes the phase another policy's, with other hooks.
func askedBy(policy string, keys ...v1alpha1.AnnotationKey) func(*protocol.HookPhase) {
	return func(h *protocol.HookPhase) { h.Policy, h.Hooks = policy, keys }
}

// hooked sets the same hooks before the drain and after the boot.
func hooked(keys ...v1alpha1.AnnotationKey) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) { p.Spec.Hooks = &v1alpha1.Hooks{Before: keys, After: keys} }
}

func grantedAt(d time.Duration) func(*protocol.Grant) {
	return func(g *protocol.Grant) { g.At = metav1.NewTime(evening.Add(d)) }
}

func cancelledAt(d time.Duration, reason v1alpha1.Reason) func(*protocol.Grant) {
	return func(g *protocol.Grant) { g.At, g.Reason = metav1.NewTime(evening.Add(d)), reason }
}

func because(message string) func(*protocol.Grant) {
	return func(g *protocol.Grant) { g.Message = message }
}

func givenBy(policy string) func(*protocol.Grant) {
	return func(g *protocol.Grant) { g.Policy = policy }
}

func phaseAt(d time.Duration) func(*protocol.Progress) {
	return func(p *protocol.Progress) { p.At = metav1.NewTime(evening.Add(d)) }
}

func failed(times int32, reason v1alpha1.Reason, message string) func(*protocol.Progress) {
	return func(p *protocol.Progress) { p.Failures, p.Reason, p.Message = times, reason, message }
}

func annotated(key, value string) func(*host) {
	return func(h *host) { annotate(h.node, key, value) }
}

// agentBlocking gives the host's agent reasons to report, in JSON.
func agentBlocking(reasons string) func(*host) {
	return annotated(v1alpha1.AnnotationReport, reporting(reasons))
}

// reporting returns an agent's report that has only reasons.
func reporting(reasons string) string { return `{"blockedBy":[` + reasons + `]}` }

func bootID(id string) func(*host) { return func(h *host) { h.node.Status.NodeInfo.BootID = id } }

func deleting(h *host) {
	at := metav1.NewTime(evening)
	h.node.DeletionTimestamp = &at
}

func tainted(key string, effect corev1.TaintEffect) func(*host) {
	return func(h *host) { h.node.Spec.Taints = append(h.node.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

// pending sets the pending taint, and podsOff the one that keeps new pods off.
var (
	pending = tainted(v1alpha1.TaintPending, corev1.TaintEffectPreferNoSchedule)
	podsOff = tainted(v1alpha1.TaintPending, corev1.TaintEffectNoSchedule)
)

// withAnnotations makes the grant own annotations for autoscalers.
func withAnnotations(keys ...string) func(*protocol.Grant) {
	return func(g *protocol.Grant) { g.Annotations = keys }
}

// showsAutoscalers adds to the host's transcript line whether autoscalers are kept from it.
func showsAutoscalers(h *host) { h.showsAutoscalers = true }

// excluded makes the grant own the label for load balancers.
func excluded(g *protocol.Grant) { g.Excluded = true }

// unremediated is a grant that keeps health controllers off its node.
func unremediated(g *protocol.Grant) { g.Unremediated = true }

// announcing sets condition MaintenancePlanned. The reason tells whether it is the manager's.
func announcing(reason string) func(*host) {
	return func(h *host) {
		removeCondition(h.node, corev1.NodeMaintenancePlanned)
		h.node.Status.Conditions = append(h.node.Status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeMaintenancePlanned, Status: corev1.ConditionTrue, Reason: reason,
		})
	}
}

// nodeCondition sets a condition that has lasted since a time counted from the evening.
func nodeCondition(kind corev1.NodeConditionType, status corev1.ConditionStatus, since time.Duration) func(*host) {
	return func(h *host) {
		removeCondition(h.node, kind)
		h.node.Status.Conditions = append(h.node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: status, LastTransitionTime: metav1.NewTime(evening.Add(since)),
		})
	}
}

// permitted sets condition RebootPermitted for a granted reboot.
func permitted(reason v1alpha1.Reason) func(*host) {
	return func(h *host) {
		nodeCondition(v1alpha1.NodeRebootPermitted, corev1.ConditionTrue, 0)(h)
		conditionOf(h.node, v1alpha1.NodeRebootPermitted).Reason = string(reason)
	}
}

// rebooted puts the node on its second boot, Ready and reported by its agent since times counted
// from the evening.
func rebooted(ready, reported time.Duration) func(*host) {
	return func(h *host) {
		bootID(h.name + "-boot-2")(h)
		nodeCondition(corev1.NodeReady, corev1.ConditionTrue, ready)(h)
		reportedBack(reported)(h)
	}
}

// reportedBack shows that the agent has reported after a granted reboot.
func reportedBack(since time.Duration) func(*host) {
	return func(h *host) {
		nodeCondition(corev1.NodeMaintenanceInProgress, corev1.ConditionFalse, since)(h)
		h.node.Status.Conditions[len(h.node.Status.Conditions)-1].Reason = v1alpha1.EventRebootSucceeded
	}
}

// notReportedBack shows that the agent has not reported since the point of no return of a granted
// reboot.
func notReportedBack(since time.Duration) func(*host) {
	return maintained(v1alpha1.ReasonRebooting, since)
}

// maintained shows a maintenance by the program that the reason names.
func maintained(reason v1alpha1.Reason, since time.Duration) func(*host) {
	return func(h *host) {
		nodeCondition(corev1.NodeMaintenanceInProgress, corev1.ConditionTrue, since)(h)
		h.node.Status.Conditions[len(h.node.Status.Conditions)-1].Reason = string(reason)
	}
}

func instantAfter(d time.Duration) time.Time { return evening.Add(d) }
