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
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// situation is a snapshot in the terms of the tables. Its first policy decides; there are no windows unless the case sets some.
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
	policies := values(s.policies)
	snapshot.Governor = plan.NewGovernor(policies)
	snapshot.Ledger = snapshot.Governor.LedgerOf(snapshot.Policy, policies)
	for _, h := range s.hosts {
		snapshot.Nodes = append(snapshot.Nodes, new(h.view()))
	}
	return snapshot
}

func (s situation) plan() plan.Plan { return plan.Of(s.snapshot()) }

// same compares a part of a plan with what the test wants.
func same(t *testing.T, what string, want, got any, options ...cmp.Option) {
	t.Helper()
	if diff := cmp.Diff(want, got, options...); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// decided is the decision about a node; the zero value: there is none.
func decided(p plan.Plan, node string) plan.Decision {
	for _, d := range p.Decisions {
		if d.Node == node {
			return d
		}
	}
	return plan.Decision{}
}

// one is a situation of one policy and its nodes.
func one(p *v1alpha1.RebootPolicy, hosts ...*host) situation {
	return situation{policies: []*v1alpha1.RebootPolicy{p}, hosts: hosts}
}

// with is the situation beside other policies, and in is it in a window.
func (s situation) with(policies ...*v1alpha1.RebootPolicy) situation {
	s.policies = append(s.policies, policies...)
	return s
}

func (s situation) in(w window.State) situation {
	s.window = &w
	return s
}

// options are what changes a host, or a policy.
func options[T any](list ...func(*T)) []func(*T) { return list }

// holding puts entries into the ledger of a policy, whose highest number is seq.
func holding(seq int64, entries ...v1alpha1.LedgerEntry) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Status.Seq = seq
		p.Status.Grants = append(p.Status.Grants, entries...)
	}
}

// entry is the ledger entry of a node for its first boot.
func entry(node string, seq int64) v1alpha1.LedgerEntry {
	return v1alpha1.LedgerEntry{Node: node, Seq: seq, BootID: node + "-boot-1", At: metav1.NewTime(evening)}
}

// grant is what the manager has shown the node: policy workers, this boot, now; mods change that.
func grant(seq int64, state protocol.GrantState, mods ...func(*protocol.Grant)) func(*host) {
	return func(h *host) {
		g := protocol.Grant{Policy: "workers", Seq: seq, BootID: h.name + "-boot-1", State: state, At: metav1.NewTime(evening)}
		for _, m := range mods {
			m(&g)
		}
		annotate(h.node, v1alpha1.AnnotationGrant, g.String())
	}
}

// underWay is a node in its reboot, under grant 1.
func underWay(h *host) {
	grant(1, protocol.GrantActive)(h)
	progress(1, protocol.PhaseRebooting)(h)
}

// progress is what the agent has made of it: this boot, now, cordoned by the agent; mods change that.
func progress(seq int64, phase protocol.Phase, mods ...func(*protocol.Progress)) func(*host) {
	return func(h *host) {
		p := protocol.Progress{Seq: seq, Phase: phase, BootID: h.name + "-boot-1", At: metav1.NewTime(evening)}
		for _, m := range mods {
			m(&p)
		}
		annotate(h.node, v1alpha1.AnnotationProgress, p.String())
	}
}

// phase is the phase of hooks that the node is in, since an instant counted from the evening. Policy workers asks example.com/a in this
// boot, before the drain, or in the next one, after it; mods change that.
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

// askedBy is another policy's phase, and asks other hooks.
func askedBy(policy string, keys ...v1alpha1.AnnotationKey) func(*protocol.HookPhase) {
	return func(h *protocol.HookPhase) { h.Policy, h.Hooks = policy, keys }
}

// hooked asks the same hooks before the drain and after the boot.
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

// agentBlocking is a host whose agent reports reasons, in JSON.
func agentBlocking(reasons string) func(*host) {
	return annotated(v1alpha1.AnnotationReport, reporting(reasons))
}

// reporting is the report of an agent with nothing but reasons.
func reporting(reasons string) string { return `{"blockedBy":[` + reasons + `]}` }

func bootID(id string) func(*host) { return func(h *host) { h.node.Status.NodeInfo.BootID = id } }

func deleting(h *host) {
	at := metav1.NewTime(evening)
	h.node.DeletionTimestamp = &at
}

func tainted(key string, effect corev1.TaintEffect) func(*host) {
	return func(h *host) { h.node.Spec.Taints = append(h.node.Spec.Taints, corev1.Taint{Key: key, Effect: effect}) }
}

// pending is a node with the pending taint; podsOff is one whose taint keeps new pods off.
var (
	pending = tainted(v1alpha1.TaintPending, corev1.TaintEffectPreferNoSchedule)
	podsOff = tainted(v1alpha1.TaintPending, corev1.TaintEffectNoSchedule)
)

// withAnnotations is a grant that has set annotations for autoscalers.
func withAnnotations(keys ...string) func(*protocol.Grant) {
	return func(g *protocol.Grant) { g.Annotations = keys }
}

// showsAutoscalers is a host whose line in a transcript reports whether autoscalers are kept from it.
func showsAutoscalers(h *host) { h.showsAutoscalers = true }

// excluded is a grant that has set the label for load balancers.
func excluded(g *protocol.Grant) { g.Excluded = true }

// announcing is a node with condition MaintenancePlanned, which is the manager's by its reason.
func announcing(reason string) func(*host) {
	return func(h *host) {
		removeCondition(h.node, corev1.NodeMaintenancePlanned)
		h.node.Status.Conditions = append(h.node.Status.Conditions, corev1.NodeCondition{
			Type: corev1.NodeMaintenancePlanned, Status: corev1.ConditionTrue, Reason: reason,
		})
	}
}

// nodeCondition sets a condition that has lasted since an instant, counted from the evening.
func nodeCondition(kind corev1.NodeConditionType, status corev1.ConditionStatus, since time.Duration) func(*host) {
	return func(h *host) {
		removeCondition(h.node, kind)
		h.node.Status.Conditions = append(h.node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: status, LastTransitionTime: metav1.NewTime(evening.Add(since)),
		})
	}
}

// permitted is a node that shows how far its granted reboot is.
func permitted(reason v1alpha1.Reason) func(*host) {
	return func(h *host) {
		nodeCondition(v1alpha1.NodeRebootPermitted, corev1.ConditionTrue, 0)(h)
		conditionOf(h.node, v1alpha1.NodeRebootPermitted).Reason = string(reason)
	}
}

// rebooted is a node that is up on its second boot: Ready and reported by its agent since instants counted from the evening.
func rebooted(ready, reported time.Duration) func(*host) {
	return func(h *host) {
		bootID(h.name + "-boot-2")(h)
		nodeCondition(corev1.NodeReady, corev1.ConditionTrue, ready)(h)
		reportedBack(reported)(h)
	}
}

// reportedBack is a node whose agent has reported after a granted reboot.
func reportedBack(since time.Duration) func(*host) {
	return func(h *host) {
		nodeCondition(corev1.NodeMaintenanceInProgress, corev1.ConditionFalse, since)(h)
		h.node.Status.Conditions[len(h.node.Status.Conditions)-1].Reason = v1alpha1.EventRebootSucceeded
	}
}

// notReportedBack is a node whose agent has not reported since the point of no return of a granted reboot.
func notReportedBack(since time.Duration) func(*host) {
	return maintained(v1alpha1.ReasonRebooting, since)
}

// maintained is a node in a maintenance by the program that this reason shows.
func maintained(reason v1alpha1.Reason, since time.Duration) func(*host) {
	return func(h *host) {
		nodeCondition(corev1.NodeMaintenanceInProgress, corev1.ConditionTrue, since)(h)
		h.node.Status.Conditions[len(h.node.Status.Conditions)-1].Reason = string(reason)
	}
}

func instantAfter(d time.Duration) time.Time { return evening.Add(d) }
