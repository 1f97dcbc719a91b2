package forecast_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/forecast"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

func at(hour, minute int) time.Time {
	return monday.Truncate(24 * time.Hour).Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute)
}

// outline shortens a forecast: the nodes that go, with the minutes from now, and the nodes that
// stay, with their reasons.
func outline(f forecast.Forecast) (goes, stays []string) {
	for _, r := range f.Reboots {
		goes = append(goes, fmt.Sprintf("%s %v–%v", r.Node, r.StartsAt.Sub(f.At).Minutes(), r.EndsAt.Sub(f.At).Minutes()))
	}
	for _, s := range f.Stays {
		stays = append(stays, fmt.Sprintf("%s %s", s.Node, s.Reason))
	}
	return goes, stays
}

func holds(node string, seq int64, ago time.Duration) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Status.Seq = max(p.Status.Seq, seq)
		p.Status.Grants = append(p.Status.Grants, v1alpha1.LedgerEntry{Node: node, Seq: seq, BootID: node + "-boot-1", At: metav1.NewTime(monday.Add(-ago))})
	}
}

func granted(policy string, seq int64, state protocol.GrantState, ago time.Duration) func(*record.Node) {
	return func(n *record.Node) {
		n.Grant = &protocol.Grant{Policy: policy, Seq: seq, BootID: n.Name + "-boot-1", State: state, At: metav1.NewTime(monday.Add(-ago))}
	}
}

func progressed(seq int64, phase protocol.Phase, ago time.Duration, failures int32) func(*record.Node) {
	return func(n *record.Node) {
		n.Progress = &protocol.Progress{
			Seq: seq, Phase: phase, BootID: n.Name + "-boot-1", At: metav1.NewTime(monday.Add(-ago)), Failures: failures, Cordoned: phase != protocol.PhaseAborted,
		}
		n.Cordoned = n.Progress.Cordoned
	}
}

func booted(ago time.Duration) func(*record.Node) {
	return func(n *record.Node) {
		n.BootID, n.ReadySince, n.MaintenanceSince = n.Name+"-boot-2", monday.Add(-ago), monday.Add(-ago)
		content(n)
	}
}

// sharing makes only the limit of policy limiting count.
func sharing(p *v1alpha1.RebootPolicy) {
	p.Spec.Concurrency = &v1alpha1.Concurrency{Shared: "limiting"}
}

// beginsWith makes each run begin with some nodes, which soak for half an hour.
func beginsWith(nodes string) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Spec.Concurrency.FirstBatch = &v1alpha1.FirstBatch{Nodes: new(intstr.Parse(nodes)), Soak: v1alpha1.Duration{Duration: 30 * time.Minute}}
	}
}

// peopleFor makes the drained node wait for people who are logged in, for some time already.
func peopleFor(ago time.Duration) func(*record.Node) {
	return func(n *record.Node) { n.PeopleSince = monday.Add(-ago) }
}

// runHooked sets one hook before each run and one after it.
func runHooked(p *v1alpha1.RebootPolicy) {
	p.Spec.Hooks = &v1alpha1.Hooks{RunBefore: []v1alpha1.AnnotationKey{"example.com/noout-set"}, RunAfter: []v1alpha1.AnnotationKey{"example.com/noout-unset"}}
}

// asked sets a stage of a run whose hooks have been running for ten minutes.
func asked(stage v1alpha1.RunStage, reason v1alpha1.Reason) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Status.Seq = 7
		p.Status.Run = &v1alpha1.RunStatus{Hooks: &v1alpha1.RunHooks{
			Stage: stage, Number: 7, Asked: []v1alpha1.AnnotationKey{"example.com/noout-unset"}, At: metav1.NewTime(monday.Add(-10 * time.Minute)), Reason: reason,
		}}
	}
}

// limiting returns a policy of other nodes.
func limiting(options ...func(*v1alpha1.RebootPolicy)) *v1alpha1.RebootPolicy {
	p := policy(options...)
	p.Name, p.Spec.NodeSelector = "limiting", &v1alpha1.LabelSelector{MatchLabels: map[string]string{"pool": "other"}}
	p.Spec.Priority = 1
	return p
}

// TestOf shows when nodes go, and which stay, without a window. A reboot without measurements takes
// five minutes, plus one minute to settle.
func TestOf(t *testing.T) {
	inhibited := func(n *record.Node) {
		n.BlockedBy = []protocol.Blocker{{Reason: v1alpha1.ReasonInhibited, Message: "backup"}}
	}
	justBooted := func(n *record.Node) {
		n.BlockedBy = []protocol.Blocker{{Reason: v1alpha1.ReasonJustBooted, Message: "until soon"}}
	}
	active := protocol.GrantActive
	canary, later := labelled("ring", "canary"), labelled("ring", "later")
	waitsForPods := policy(spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Gates = &v1alpha1.Gates{BlockingPods: []v1alpha1.BlockingPod{{}}}
	}))
	blocked := func(n *record.Node) {
		question, _ := protocol.ParsePreflight(map[string]string{v1alpha1.AnnotationPreflight: gates.PodsOf(waitsForPods).Preflight()})
		pods := &protocol.NamedPods{Count: 1, Pods: []protocol.NamedPod{{Pod: "default/migrate-1"}}}
		n.PreflightReport = &protocol.PreflightReport{Policy: question.Policy, Revision: question.Revision, BootID: n.BootID, Blocking: pods}
	}
	cases := map[string]struct {
		policy *v1alpha1.RebootPolicy
		rivals []v1alpha1.RebootPolicy
		nodes  []*record.Node
		goes   []string
		stays  []string
		// unknown is the beginning of Unknown.
		unknown string
	}{
		"at rest": {policy: policy(), nodes: []*record.Node{needy("a", content)}},
		"no node": {policy: policy()},
		"grants of a policy that is gone": {
			policy: policy(), nodes: []*record.Node{needy("a", notReady, granted("gone", 1, active, time.Hour)), needy("b", content, granted("gone", 3, active, time.Hour)), needy("c")},
			stays: []string{"a NodeUnavailable", "c BudgetExhausted"}, unknown: "NodeUnavailable: the node is not Ready, so a reboot could not be confirmed; repair the node first",
		},
		"one after the other": {
			policy: policy(), nodes: []*record.Node{needy("a"), needy("b"), needy("c", content)}, goes: []string{"a 0–6", "b 6–12"},
		},
		"a host that has just booted": {policy: policy(), nodes: []*record.Node{needy("a", justBooted)}, goes: []string{"a 0–6"}},
		"a dry run is forecast as if it rebooted nodes": {
			policy: policy(spec(func(s *v1alpha1.RebootPolicySpec) { s.Mode = v1alpha1.ModeDryRun })), nodes: []*record.Node{needy("a")}, goes: []string{"a 0–6"},
		},
		"many nodes wait for their turn, because of one that is down": {
			policy: policy(), nodes: []*record.Node{needy("a", notReady), needy("b"), needy("c")},
			stays: []string{"a NodeUnavailable", "b BudgetExhausted", "c BudgetExhausted"}, unknown: "NodeUnavailable: the node is not Ready, so a reboot could not be confirmed; repair the node first",
		},
		"a cordon that nobody has ended uses up the limit": {
			policy: policy(), nodes: []*record.Node{needy("a", content, cordoned), needy("b")}, stays: []string{"b BudgetExhausted"},
			unknown: "BudgetExhausted: waiting for its turn: at most 1 of the nodes may be unavailable at once; unavailable: a (is cordoned)",
		},
		"nodes kept by pods stay; nodes that were not looked at are assumed free": {
			policy: waitsForPods, nodes: []*record.Node{needy("a", blocked), needy("b")}, goes: []string{"b 0–6"}, stays: []string{"a BlockingPod"},
		},
		"nodes that wait for a person stay, and the others go": {
			policy: policy(), nodes: []*record.Node{needy("a", paused), needy("b", inhibited), needy("c")},
			goes: []string{"c 0–6"}, stays: []string{"a NodePaused", "b Inhibited"},
		},
		"no node goes if all wait for a person": {
			policy: policy(), nodes: []*record.Node{needy("a", paused), needy("b", inhibited), needy("c", inhibited)},
			stays: []string{"a NodePaused", "b Inhibited", "c Inhibited"}, unknown: "Inhibited: backup",
		},
		"a node that is down and needs no reboot uses up the budget for good": {
			policy: policy(atMost("2")), nodes: []*record.Node{needy("a", notReady, content), needy("b"), needy("c")}, goes: []string{"b 0–6", "c 6–12"},
		},
		"the policy is paused": {
			policy: policy(spec(func(s *v1alpha1.RebootPolicySpec) { s.Pause = &v1alpha1.Pause{Reason: "audit"} })), nodes: []*record.Node{needy("a")},
			stays: []string{"a Paused"}, unknown: "Paused: policy workers is paused: audit",
		},
		"the policy is paused for an hour": {
			policy: policy(spec(func(s *v1alpha1.RebootPolicySpec) {
				s.Pause = &v1alpha1.Pause{Until: new(metav1.NewTime(monday.Add(time.Hour)))}
			})),
			nodes: []*record.Node{needy("a"), needy("b")}, goes: []string{"a 60–66", "b 66–72"},
		},
		"the policy is paused, and what has begun finishes": {
			policy: policy(holds("a", 7, 2*minute), spec(func(s *v1alpha1.RebootPolicySpec) { s.Pause = &v1alpha1.Pause{} })),
			nodes:  []*record.Node{needy("a", granted("workers", 7, active, 2*minute), progressed(7, protocol.PhaseDraining, minute, 0)), needy("b")},
			goes:   []string{"a -2–5"}, stays: []string{"b Paused"},
		},
		"a drained node waits for people for ten minutes": {
			policy: policy(holds("a", 7, 4*minute)),
			nodes:  []*record.Node{needy("a", granted("workers", 7, active, 4*minute), progressed(7, protocol.PhaseDraining, 3*minute, 0), peopleFor(minute)), needy("b")},
			goes:   []string{"a -4–13", "b 13–19"},
		},
		"a drained node waits for people, and its drain times out first": {
			policy: policy(holds("a", 7, 16*minute)),
			nodes:  []*record.Node{needy("a", granted("workers", 7, active, 16*minute), progressed(7, protocol.PhaseDraining, 15*minute, 0), peopleFor(minute)), needy("b")},
			goes:   []string{"a -16–9", "b 9–15"},
		},
		"an urgent request goes before the window opens, and the other in it": {
			policy: policy(weeknights, allowsUrgent),
			nodes:  []*record.Node{needy("a"), needy("b", urgently)}, goes: []string{"b 0–6", "a 60–66"},
		},
		"urgent requests go one after the other without a window, and all others stay": {
			policy: policy(allowsUrgent, spec(func(s *v1alpha1.RebootPolicySpec) {
				s.Blackouts = []v1alpha1.Blackout{{Name: "frozen", From: "2026-11-01", To: "2028-11-01"}}
			})),
			nodes: []*record.Node{needy("a"), needy("b", urgently), needy("c", urgently)}, goes: []string{"b 0–6", "c 6–12"}, stays: []string{"a Blackout"},
		},
		"each node waits for the spacing after the previous one": {
			policy: policy(spec(func(s *v1alpha1.RebootPolicySpec) {
				s.Concurrency = &v1alpha1.Concurrency{Spacing: &v1alpha1.Duration{Duration: 10 * time.Minute}}
			})),
			nodes: []*record.Node{needy("a"), needy("b"), needy("c")}, goes: []string{"a 0–6", "b 16–22", "c 32–38"},
		},
		"a run begins with one node, which soaks before three others go at once": {
			policy: policy(atMost("3"), beginsWith("1")),
			nodes:  []*record.Node{needy("a"), needy("b"), needy("c"), needy("d"), needy("e")}, goes: []string{"a 0–6", "b 36–42", "c 36–42", "d 36–42", "e 42–48"},
		},
		"a run begins with a percentage of all nodes": {
			policy: policy(atMost("3"), beginsWith("40%")),
			nodes:  []*record.Node{needy("a"), needy("b"), needy("c"), needy("d"), needy("e")}, goes: []string{"a 0–6", "b 0–6", "c 36–42", "d 36–42", "e 36–42"},
		},
		"hooks of a run are assumed to approve": {
			policy: policy(runHooked), nodes: []*record.Node{needy("a"), needy("b")}, goes: []string{"a 0–6", "b 6–12"},
		},
		"hooks that have not answered yet are assumed to approve": {
			policy: policy(runHooked, asked(v1alpha1.RunAfter, ""), func(p *v1alpha1.RebootPolicy) {
				p.Status.Run.Hooks.At = metav1.NewTime(p.Status.Run.Hooks.At.Add(8 * time.Minute))
			}),
			nodes: []*record.Node{needy("a"), needy("b")}, goes: []string{"a 0–6", "b 6–12"},
		},
		"hooks without an answer for ten minutes keep all nodes": {
			policy: policy(runHooked, asked(v1alpha1.RunAfter, "")), nodes: []*record.Node{needy("a"), needy("b")},
			stays: []string{"a RunHookWaits", "b BudgetExhausted"}, unknown: "RunHookWaits: the last run is not over: hooks.runAfter of policy workers " +
				"have been running since Mon 2026-11-23 19:50:00 UTC: waiting for example.com/noout-unset; to answer for one: " +
				`kubectl annotate rebootpolicy workers example.com/noout-unset="7: true" --overwrite`,
		},
		"hooks after the last run without an answer for too long keep all nodes": {
			policy: policy(runHooked, asked(v1alpha1.RunAfter, v1alpha1.ReasonHookTimedOut)), nodes: []*record.Node{needy("a"), needy("b")},
			stays: []string{"a RunHookWaits", "b BudgetExhausted"}, unknown: "RunHookWaits: the last run is not over: hooks.runAfter of policy workers " +
				"have been running since Mon 2026-11-23 19:50:00 UTC: waiting for example.com/noout-unset; to answer for one: " +
				`kubectl annotate rebootpolicy workers example.com/noout-unset="7: true" --overwrite`,
		},
		"the run after one that failed to begin waits, and then goes": {
			policy: policy(runHooked, asked(v1alpha1.RunAfter, v1alpha1.ReasonHookFailed), func(p *v1alpha1.RebootPolicy) {
				p.Annotations = map[string]string{"example.com/noout-unset": "7: true"}
			}),
			nodes: []*record.Node{needy("a"), needy("b")}, goes: []string{"a 5–11", "b 11–17"},
		},
		"ring after ring, each within its limit, and after the soak of the previous ring": {
			policy: policy(atMost("2"), rings), nodes: []*record.Node{needy("a"), needy("b", later), needy("c", later), needy("d", canary), needy("e", canary)},
			goes: []string{"d 0–6", "e 6–12", "b 42–48", "c 42–48", "a 48–54"},
		},
		"a ring that is already soaking": {
			policy: policy(rings), nodes: []*record.Node{needy("a"), needy("b", canary, content, granted("workers", 1, protocol.GrantFinished, 10*minute))},
			goes: []string{"a 20–26"},
		},
		"a node that waits for a person keeps later rings waiting": {
			policy: policy(rings), nodes: []*record.Node{needy("a"), needy("b", later), needy("c", canary, inhibited), needy("d", canary, inhibited)},
			stays: []string{"a RingWaits", "b RingWaits", "c Inhibited", "d Inhibited"}, unknown: "RingWaits: waiting for ring canary: c is not done (Inhibited); paused nodes do not count",
		},
		"a paused node does not keep later rings waiting": {
			policy: policy(rings), nodes: []*record.Node{needy("a"), needy("c", canary, inhibited, paused)}, goes: []string{"a 0–6"}, stays: []string{"c NodePaused"},
		},
		"a node past its deadline goes first, wherever it is": {
			policy: policy(zones, deadline(2*time.Hour)), nodes: append(pool(9, labelled("zone", "a")), needy("z", since(115*minute), labelled("zone", "b"))),
			goes: []string{"node-00001 0–6", "z 6–12", "node-00002 12–18", "node-00003 18–24", "node-00004 24–30", "node-00005 30–36", "node-00006 36–42", "node-00007 42–48", "node-00008 48–54", "node-00009 54–60"},
		},
		"at its deadline a node goes before the window opens, which is in an hour, and the others in it": {
			policy: policy(weeknights, deadline(2*time.Hour, v1alpha1.UrgentIgnoresWindows)), nodes: []*record.Node{needy("a", since(minute)), needy("b", since(110*minute)), needy("c", since(3*time.Hour))},
			goes: []string{"c 0–6", "b 10–16", "a 60–66"},
		},
		"a deadline that does not ignore windows opens none": {
			policy: policy(weeknights, deadline(2*time.Hour)), nodes: []*record.Node{needy("a", since(3*time.Hour))}, goes: []string{"a 60–66"},
		},
		"a deadline opens no window during a pause": {
			policy: policy(weeknights, deadline(2*time.Hour, v1alpha1.UrgentIgnoresWindows), spec(func(s *v1alpha1.RebootPolicySpec) { s.Pause = &v1alpha1.Pause{} })),
			nodes:  []*record.Node{needy("a", since(3*time.Hour))}, stays: []string{"a Paused"}, unknown: "Paused: policy workers is paused",
		},
		"the policy has halted": {
			policy: policy(func(p *v1alpha1.RebootPolicy) {
				meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionHalted, Status: metav1.ConditionTrue, Message: "2 nodes failed"})
			}),
			nodes: []*record.Node{needy("a")}, stays: []string{"a Halted"},
			unknown: `Halted: policy workers halted after failures; to resume: kubectl annotate rebootpolicy workers reboot-operator.io/resume="why"`,
		},
		"the limit is 0": {
			policy: policy(atMost("0")), nodes: []*record.Node{needy("a")}, stays: []string{"a BudgetExhausted"},
			unknown: "BudgetExhausted: maxUnavailable is 0: no node may be rebooted",
		},
		"the spec is invalid": {
			policy: policy(spec(func(s *v1alpha1.RebootPolicySpec) { s.Windows = []v1alpha1.Window{{Name: "w", Start: "25:00"}} })), nodes: []*record.Node{needy("a")},
			stays: []string{"a Invalid"}, unknown: `Invalid: policy workers: window "w": start "25:00" must be a time of day as HH:MM, from 00:00 to 23:59`,
		},
		"a node that backs off goes when its time has come": {
			policy: policy(), nodes: []*record.Node{needy("a", progressed(3, protocol.PhaseAborted, minute, 2)), needy("b")},
			goes: []string{"b 0–6", "a 9–15"},
		},
		"too many have failed": {
			policy: policy(), nodes: []*record.Node{needy("a", progressed(3, protocol.PhaseAborted, minute, 1)), needy("b", progressed(4, protocol.PhaseAborted, minute, 1)), needy("c")},
			stays:   []string{"a Halted", "b Halted", "c Halted"},
			unknown: `Halted: policy workers halted after failures; to resume: kubectl annotate rebootpolicy workers reboot-operator.io/resume="why"`,
		},
		"two policies select a node": {
			policy: policy(), rivals: []v1alpha1.RebootPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.RebootPolicySpec{
				NodeSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}},
			}}},
			nodes: []*record.Node{needy("a", labelled("zone", "a")), needy("b")}, goes: []string{"b 0–6"}, stays: []string{"a PolicyConflict"},
		},
		"two policies select a node that is down": {
			policy: policy(), rivals: []v1alpha1.RebootPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.RebootPolicySpec{
				NodeSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}},
			}}},
			nodes: []*record.Node{needy("a", labelled("zone", "a"), notReady), needy("b")}, stays: []string{"a PolicyConflict", "b BudgetExhausted"},
			unknown: "PolicyConflict: policies all, workers select the node with the same priority; raise spec.priority of one",
		},
		"two policies select a node that one of them reboots": {
			policy: policy(holds("c", 8, 2*minute), atMost("2")), rivals: []v1alpha1.RebootPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Spec: v1alpha1.RebootPolicySpec{
				NodeSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"zone": "a"}},
			}}},
			nodes: []*record.Node{
				needy("a", labelled("zone", "a"), granted("all", 7, active, 2*minute), progressed(7, protocol.PhaseDraining, 2*minute, 0)), needy("b"),
				needy("c", labelled("zone", "a"), granted("workers", 8, active, 2*minute), progressed(8, protocol.PhaseDraining, 2*minute, 0)),
			},
			goes: []string{"c -2–4", "b 4–10"},
		},
		"granted, and not begun": {
			policy: policy(holds("a", 7, minute)), nodes: []*record.Node{needy("a", granted("workers", 7, active, minute)), needy("b")},
			goes: []string{"a -1–6", "b 6–12"},
		},
		"a grant that is only in the ledger": {policy: policy(holds("a", 7, 0)), nodes: []*record.Node{needy("a")}, goes: []string{"a 0–6"}},
		"a grant that the ledger has lost": {
			policy: policy(), nodes: []*record.Node{needy("a", granted("workers", 7, active, minute), progressed(7, protocol.PhaseDraining, minute, 0)), needy("b")},
			goes: []string{"a -1–5", "b 5–11"},
		},
		"a drain that takes longer than expected ends now": {
			policy: policy(holds("a", 7, 9*minute)),
			nodes:  []*record.Node{needy("a", granted("workers", 7, active, 9*minute), progressed(7, protocol.PhaseDraining, 9*minute, 0)), needy("b")},
			goes:   []string{"a -9–4", "b 4–10"},
		},
		"rebooting": {
			policy: policy(holds("a", 7, 3*minute)),
			nodes:  []*record.Node{needy("a", granted("workers", 7, active, 3*minute), progressed(7, protocol.PhaseRebooting, minute, 0), notReady), needy("b")},
			goes:   []string{"a -3–3", "b 3–9"},
		},
		"settling": {
			policy: policy(holds("a", 7, 6*minute)),
			nodes:  []*record.Node{needy("a", granted("workers", 7, active, 6*minute), progressed(7, protocol.PhaseRebooting, 4*minute, 0), booted(minute/2)), needy("b")},
			goes:   []string{"a -6–0.5", "b 0.5–6.5"},
		},
		"a startup taint keeps pods off: it is expected to go now": {
			policy: policy(holds("a", 7, 6*minute)),
			nodes: []*record.Node{needy("a", granted("workers", 7, active, 6*minute), progressed(7, protocol.PhaseRebooting, 4*minute, 0), booted(2*minute),
				func(n *record.Node) {
					n.Cordoned, n.Taints = true, []corev1.Taint{{Key: "cni", Effect: corev1.TaintEffectNoSchedule}}
				}), needy("b")},
			goes: []string{"a -6–1", "b 1–7"},
		},
		"settled": {
			policy: policy(holds("a", 7, 6*minute)),
			nodes:  []*record.Node{needy("a", granted("workers", 7, active, 6*minute), progressed(7, protocol.PhaseRebooting, 4*minute, 0), booted(2*minute)), needy("b")},
			goes:   []string{"a -6–0", "b 0–6"},
		},
		"did not come back": {
			policy: policy(holds("a", 7, 40*minute)),
			nodes:  []*record.Node{needy("a", granted("workers", 7, active, 40*minute), progressed(7, protocol.PhaseRebooting, 38*minute, 0), notReady), needy("b")},
			stays:  []string{"a RebootTimedOut", "b BudgetExhausted"}, unknown: "RebootTimedOut: the node was sent to reboot at Mon 2026-11-23 19:22:00 UTC and was not back within 30m0s; it keeps its slot. Check the machine; once you are sure it is off, delete the Node to free the slot",
		},
		"the node's agent is dead": {
			policy: policy(holds("a", 7, 6*minute)), nodes: []*record.Node{needy("a", granted("workers", 7, active, 6*minute)), needy("b")},
			goes: []string{"b 0–6", "a 15–21"},
		},
		"a domain with a reboot in progress comes before the first one": {
			policy: policy(atMost("2"), zones, holds("c", 7, 2*minute)),
			nodes: []*record.Node{
				needy("a", labelled("zone", "a")), needy("b", labelled("zone", "b")),
				needy("c", labelled("zone", "b"), granted("workers", 7, active, 2*minute), progressed(7, protocol.PhaseDraining, 2*minute, 0)),
			},
			goes: []string{"c -2–4", "b 0–6", "a 6–12"},
		},
		"it has given up": {
			policy: policy(holds("a", 7, 6*minute)),
			nodes:  []*record.Node{needy("a", granted("workers", 7, active, 6*minute), progressed(7, protocol.PhaseAborted, minute, 1)), needy("b")},
			goes:   []string{"b 0–6", "a 6–12"},
		},
		"its drain is being cancelled": {
			policy: policy(holds("a", 7, 6*minute)),
			nodes:  []*record.Node{needy("a", granted("workers", 7, protocol.GrantCancelled, minute), progressed(7, protocol.PhaseDraining, 2*minute, 0)), needy("b")},
			goes:   []string{"b 0–6", "a 6–12"},
		},
		"the Node is deleted": {policy: policy(holds("gone", 7, minute)), nodes: []*record.Node{needy("b")}, goes: []string{"b 0–6"}},
		"a policy whose limit it shares has a reboot in progress": {
			policy: policy(sharing), rivals: []v1alpha1.RebootPolicy{*limiting(holds("c", 7, 2*minute))},
			nodes: []*record.Node{
				needy("a"), needy("b"), needy("c", labelled("pool", "other"), granted("limiting", 7, active, 2*minute), progressed(7, protocol.PhaseDraining, 2*minute, 0)),
			},
			goes: []string{"a 4–10", "b 10–16"},
		},
		"its own reboot is in the ledger of the policy whose limit it shares": {
			policy: policy(sharing), rivals: []v1alpha1.RebootPolicy{*limiting(holds("a", 7, 2*minute), func(p *v1alpha1.RebootPolicy) { p.Status.Grants[0].Policy = "workers" })},
			nodes: []*record.Node{
				needy("a", granted("workers", 7, active, 2*minute), func(n *record.Node) { n.Grant.Ledger = "limiting" }, progressed(7, protocol.PhaseDraining, 2*minute, 0)), needy("b"),
			},
			goes: []string{"a -2–4", "b 4–10"},
		},
		"reboots of a policy whose limit it shares do not count against its own limit": {
			policy: policy(sharing, atMost("2")), rivals: []v1alpha1.RebootPolicy{*limiting(atMost("5"), holds("c", 7, 2*minute), holds("d", 8, 2*minute), holds("e", 9, 2*minute))},
			nodes: []*record.Node{
				needy("a"), needy("b"),
				needy("c", labelled("pool", "other"), granted("limiting", 7, active, 2*minute), progressed(7, protocol.PhaseDraining, 2*minute, 0)),
				needy("d", labelled("pool", "other"), granted("limiting", 8, active, 2*minute), progressed(8, protocol.PhaseDraining, 2*minute, 0)),
				needy("e", labelled("pool", "other"), granted("limiting", 9, active, 2*minute), progressed(9, protocol.PhaseDraining, 2*minute, 0)),
			},
			goes: []string{"a 0–6", "b 0–6"},
		},
		"the policy shares a limit since a reboot in progress was granted": {
			policy: policy(sharing, holds("a", 7, 2*minute)), rivals: []v1alpha1.RebootPolicy{*limiting()},
			nodes: []*record.Node{needy("a", granted("workers", 7, active, 2*minute), progressed(7, protocol.PhaseDraining, 2*minute, 0)), needy("b")},
			goes:  []string{"a -2–4", "b 4–10"},
		},
		"the policy shares no limit any more since a reboot in progress was granted": {
			policy: policy(), rivals: []v1alpha1.RebootPolicy{*limiting(holds("a", 7, 2*minute), func(p *v1alpha1.RebootPolicy) { p.Status.Grants[0].Policy = "workers" })},
			nodes: []*record.Node{needy("a", granted("workers", 7, active, 2*minute), progressed(7, protocol.PhaseDraining, 2*minute, 0)), needy("b")},
			goes:  []string{"a -2–4", "b 4–10"},
		},
		"the policy whose limit it shares does not exist": {
			policy: policy(sharing), nodes: []*record.Node{needy("a")}, stays: []string{"a SharedPolicyNotFound"},
			unknown: "SharedPolicyNotFound: policy workers: spec.concurrency.shared: policy limiting does not exist; create it, or correct the field",
		},
		"another policy reboots a control-plane node": {
			policy: policy(atMost("3"), spec(func(s *v1alpha1.RebootPolicySpec) { s.Priority = 1 })), rivals: []v1alpha1.RebootPolicy{{ObjectMeta: metav1.ObjectMeta{Name: "all"}}},
			nodes: []*record.Node{
				needy("a", controlPlane, granted("all", 7, active, 2*minute), progressed(7, protocol.PhaseDraining, 2*minute, 0)),
				needy("b", controlPlane),
			},
			goes: []string{"b 4–10"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := forecast.Of(snapshotOf(tc.policy, tc.nodes, tc.rivals...), forecast.Thorough)
			goes, stays := outline(f)
			if diff := cmp.Diff([]any{tc.goes, tc.stays, tc.unknown}, []any{goes, stays, f.Unknown}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if (len(goes) == 0) != f.CompletionAt.IsZero() {
				t.Errorf("done %v", f.CompletionAt)
			}
		})
	}
}

// TestOf_Clocks shows that times from a node's clock that is years off do not change anything. The
// forecast can be serialized, and a current reboot does not begin in the future.
func TestOf_Clocks(t *testing.T) {
	last := time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC).Sub(monday)
	for name, paused := range map[string]func(*v1alpha1.RebootPolicy){
		"the policy goes on":   func(*v1alpha1.RebootPolicy) {},
		"the policy is paused": spec(func(s *v1alpha1.RebootPolicySpec) { s.Pause = &v1alpha1.Pause{} }),
		"the policy is paused until beyond what can be written": spec(func(s *v1alpha1.RebootPolicySpec) {
			s.Pause = &v1alpha1.Pause{Until: &metav1.Time{Time: time.Date(9999, 12, 31, 23, 59, 59, 0, time.FixedZone("", -12*60*60))}}
		}),
	} {
		for phase, want := range map[protocol.Phase]string{protocol.PhaseDraining: "node-00001 -2–6", protocol.PhaseRebooting: "node-00001 -2–4"} {
			nodes := pool(1, granted("workers", 1, protocol.GrantActive, 2*minute), progressed(1, phase, -last, 0))
			nodes[0].Progress.DrainStartedAt = &metav1.Time{Time: monday.Add(last)}
			f := forecast.Of(snapshotOf(policy(paused, holds("node-00001", 1, 2*minute)), nodes), forecast.Thorough)
			goes, _ := outline(f)
			if diff := cmp.Diff([]string{want}, goes); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", name, phase, diff)
			}
			if _, err := json.Marshal(f); err != nil {
				t.Errorf("%s, %s: %v", name, phase, err)
			}
		}
	}
}

// TestOf_Gates shows that a gate that was not queried yet counts as clear, and that a gate that
// blocks keeps all nodes.
func TestOf_Gates(t *testing.T) {
	gated := policy(weeknights, spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Gates = &v1alpha1.Gates{
			Prometheus: []v1alpha1.PrometheusGate{{Name: "slo", Query: "burn > 2"}},
			Objects:    []v1alpha1.ObjectGate{{Kind: "CephCluster", Name: "ceph"}},
		}
	}))
	s := snapshotOf(gated, pool(2))
	if goes, stays := outline(forecast.Of(s, forecast.Thorough)); len(goes) != 2 || len(stays) != 0 {
		t.Errorf("not asked: goes %v, stays %v", goes, stays)
	}
	s.Gates = []v1alpha1.GateStatus{{Name: "slo", State: v1alpha1.GateFiring, Message: "burn > 2 has 1 result"}}
	f := forecast.Of(s, forecast.Thorough)
	if goes, stays := outline(f); len(goes) != 0 || !slices.Equal(stays, []string{"node-00001 AlertFiring", "node-00002 AlertFiring"}) {
		t.Errorf("firing: goes %v, stays %v", goes, stays)
	}
	if want := "AlertFiring: gate slo of policy workers: burn > 2 has 1 result"; f.Unknown != want {
		t.Errorf("unknown %q, want %q", f.Unknown, want)
	}
	s.Gates = []v1alpha1.GateStatus{{Name: "CephCluster/ceph", State: v1alpha1.GateNotReady, Message: "CephCluster ceph: the expression is false"}}
	if goes, stays := outline(forecast.Of(s, forecast.Thorough)); len(goes) != 0 || !slices.Equal(stays, []string{"node-00001 ObjectNotReady", "node-00002 ObjectNotReady"}) {
		t.Errorf("not ready: goes %v, stays %v", goes, stays)
	}
}

// TestOf_Window shows the window, and whether all reboots end before it closes.
func TestOf_Window(t *testing.T) {
	frozen := spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Blackouts = []v1alpha1.Blackout{{Name: "freeze", From: "2026-11-23", To: "2026-11-24", TimeZone: "Europe/Berlin"}}
	})
	ever := spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Blackouts = []v1alpha1.Blackout{{Name: "for-good", From: "2020-01-01", To: "2200-01-01"}}
	})
	cases := map[string]struct {
		policy *v1alpha1.RebootPolicy
		nodes  int
		want   forecast.Forecast
	}{
		"all in the next one": {
			policy(weeknights), 3, forecast.Forecast{
				CompletionAt: at(21, 18), FinishesInWindow: true, Window: &forecast.Window{Name: "weeknights", OpensAt: at(21, 0), ClosesAt: at(27, 0)},
			},
		},
		"not in the next one": {
			policy(weeknights), 61, forecast.Forecast{
				CompletionAt: at(45, 6), Window: &forecast.Window{Name: "weeknights", OpensAt: at(21, 0), ClosesAt: at(27, 0)},
			},
		},
		"always open": {policy(), 3, forecast.Forecast{CompletionAt: at(20, 18), FinishesInWindow: true}},
		"open but for a blackout": {
			policy(frozen), 3, forecast.Forecast{
				CompletionAt: at(23, 18), FinishesInWindow: true, Window: &forecast.Window{OpensAt: at(23, 0)},
			},
		},
		"never": {policy(weeknights, ever), 3, forecast.Forecast{Unknown: "Blackout: blackout for-good is in force; none opens within a year"}},
		"not within a year": {
			policy(spec(func(s *v1alpha1.RebootPolicySpec) {
				s.Windows = []v1alpha1.Window{{Name: "rare", Days: []v1alpha1.Day{"Sun"}, Start: "02:00", WeeksOfMonth: []int32{1}, Duration: v1alpha1.Duration{Duration: 10 * minute}}}
			})), 30, forecast.Forecast{
				Unknown: "not every node has had its turn within a year",
				Window:  &forecast.Window{Name: "rare", OpensAt: time.Date(2026, 12, 6, 2, 0, 0, 0, time.UTC), ClosesAt: time.Date(2026, 12, 6, 2, 10, 0, 0, time.UTC)},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := forecast.Of(snapshotOf(tc.policy, pool(tc.nodes)), forecast.Thorough)
			if diff := cmp.Diff(tc.want, f, cmpopts.IgnoreFields(forecast.Forecast{}, "Policy", "At", "Durations", "Reboots", "Stays")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestReboot_Overruns shows that a reboot may end after the window, because a window need not have
// room for settling.
func TestReboot_Overruns(t *testing.T) {
	p := policy(weeknights, spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Reboot = &v1alpha1.Reboot{Settle: &v1alpha1.Duration{Duration: 56 * minute}}
	}))
	var overruns []bool
	for _, r := range forecast.Of(snapshotOf(p, pool(7)), forecast.Thorough).Reboots {
		overruns = append(overruns, r.Overruns())
	}
	if want := []bool{false, false, false, false, false, true, false}; !slices.Equal(overruns, want) {
		t.Errorf("got %v, want %v", overruns, want)
	}
}

// A record that cannot be read does not change in any round, so it must not use up the effort for
// other nodes.
func TestOf_ARecordThatCannotBeReadTakesNoEffort(t *testing.T) {
	unreadable := func(n *record.Node) { n.ProgressErr = errors.New("no JSON") }
	for name, tc := range map[string]struct {
		node  *record.Node
		goes  []string
		stays []string
	}{
		"its grant is cancelled": {needy("a", content, unreadable), []string{"b 0–6", "c 6–12"}, []string{"a RecordUnreadable"}},
		"it waits for the end of another": {
			needy("a", content, unreadable, granted("gone", 1, protocol.GrantActive, time.Hour)), []string{"a -60–6", "b 0–6", "c 6–12"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := []*record.Node{tc.node, needy("b"), needy("c")}
			f := forecast.Of(snapshotOf(policy(atMost("2"), holds("a", 3, time.Hour)), nodes), forecast.Quick)
			goes, stays := outline(f)
			if diff := cmp.Diff([]any{tc.goes, tc.stays, 0}, []any{goes, stays, f.Extrapolated}); diff != "" {
				t.Errorf("who goes, who stays, and how many go by the pace of others (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOf_Extrapolates shows that the forecast continues at the same pace when the effort is used
// up. It is compared with the planner's own answer.
func TestOf_Extrapolates(t *testing.T) {
	labels := func(nodes []*record.Node) []*record.Node {
		for i := range nodes {
			nodes[i].Labels = map[string]string{"zone": string(rune('a' + i%3))}
			urgently(nodes[i]) // only one policy allows that
		}
		return nodes
	}
	for name, p := range map[string]*v1alpha1.RebootPolicy{
		"one at a time": policy(), "windows": policy(weeknights), "five": policy(weeknights, atMost("5")), "zones": policy(weeknights, atMost("7"), zones),
		"an urgent policy that is paused again in the middle": policy(spec(func(s *v1alpha1.RebootPolicySpec) {
			s.Pause = &v1alpha1.Pause{}
			s.Urgent = &v1alpha1.Urgent{All: &v1alpha1.UrgentPeriod{Until: metav1.NewTime(monday.Add(20 * time.Hour)), Ignore: []v1alpha1.UrgentIgnore{v1alpha1.UrgentIgnoresPause}}}
		})),
		"spacing":            policy(spaced),
		"spacing of several": policy(weeknights, spaced, atMost("5")),
		"a first node":       policy(atMost("5"), beginsWith("1")),
		"rings":              policy(atMost("10"), stages),
		"urgent requests":    policy(weeknights, allowsUrgent),
		"windows that close in the middle of a turn": policy(weeknights, spec(func(s *v1alpha1.RebootPolicySpec) {
			s.Reboot = &v1alpha1.Reboot{Settle: &v1alpha1.Duration{Duration: 2 * minute}}
		})),
	} {
		t.Run(name, func(t *testing.T) {
			s := snapshotOf(p, labels(pool(400)))
			exact, rough := forecast.Of(s, forecast.Thorough), forecast.Of(s, 500)
			if exact.Extrapolated != 0 || rough.Extrapolated < 100 {
				t.Fatalf("%d and %d extrapolated", exact.Extrapolated, rough.Extrapolated)
			}
			if diff := cmp.Diff(exact, rough, cmpopts.IgnoreFields(forecast.Forecast{}, "Extrapolated")); diff != "" {
				t.Errorf("(-exact +rough):\n%s", diff)
			}
		})
	}
}

// TestOf_Due shows which nodes will need a reboot because of their uptime, and when.
func TestOf_Due(t *testing.T) {
	const day = 24 * time.Hour
	upFor := func(uptime time.Duration, most string) func(*record.Node) {
		return func(n *record.Node) {
			n.Annotations = map[string]string{v1alpha1.AnnotationMaxUptime: most, v1alpha1.AnnotationBootedAt: monday.Add(-uptime).Format(time.RFC3339)}
		}
	}
	nodes := []*record.Node{
		needy("later", content, upFor(2*day, "720h0m0s")),
		needy("sooner", content, upFor(29*day, "720h0m0s")),
		needy("about-to-report", content, upFor(30*day+time.Second, "720h0m0s")),
		needy("due", upFor(31*day, "720h0m0s")),
		needy("not-reported", content, upFor(2*day, "720h0m0s"), func(n *record.Node) { delete(n.Annotations, v1alpha1.AnnotationBootedAt) }),
		needy("beyond-a-year", content, upFor(0, "87600h0m0s")),
		needy("booted-in-the-future", content, upFor(-100*365*day, "720h0m0s")),
		needy("for-ever", content, upFor(2*day, "")),
		needy("of-another", content, upFor(2*day, "720h0m0s"), labelled("pool", "other")),
		needy("in-a-reboot", content, upFor(2*day, "720h0m0s"), granted("workers", 3, protocol.GrantActive, minute)),
	}
	other := policy(spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Priority, s.NodeSelector = 1, &v1alpha1.LabelSelector{MatchLabels: map[string]string{"pool": "other"}}
	}))
	other.Name = "other"
	f := forecast.Of(snapshotOf(policy(), nodes, *other), forecast.Thorough)
	want := []forecast.Due{
		{Node: "about-to-report", At: monday}, {Node: "sooner", At: monday.Add(day)}, {Node: "later", At: monday.Add(28 * day)},
	}
	if diff := cmp.Diff(want, f.Due); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f.CompletionAt.After(monday.Add(day)) {
		t.Errorf("what is not due yet is part of what is to be done, at %v", f.CompletionAt)
	}
}

// took returns a past reboot with the durations of its phases in seconds.
func took(before, drain, reboot, settle int) v1alpha1.PastReboot {
	seconds := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Second} }
	return v1alpha1.PastReboot{
		Result: v1alpha1.RebootSucceeded, Drain: seconds(drain), Reboot: seconds(reboot), Settle: seconds(settle),
		GrantedAt: metav1.NewTime(monday), EndedAt: metav1.NewTime(monday.Add(time.Duration(before+drain+reboot+settle) * time.Second)),
	}
}

func TestExpect(t *testing.T) {
	aborted, unmeasured := took(1, 999, 999, 999), took(1, 999, 999, 999)
	aborted.Result, unmeasured.Reboot = v1alpha1.RebootAborted, nil
	cases := map[string]struct {
		history []v1alpha1.PastReboot
		// want is before, drain, reboot and settle in seconds, and the number of measured reboots.
		want [5]int
	}{
		"nothing is known yet":                          {nil, [5]int{0, 120, 180, 60, 0}},
		"one was measured":                              {[]v1alpha1.PastReboot{took(4, 30, 50, 70)}, [5]int{4, 30, 50, 70, 1}},
		"the median, each phase by itself":              {[]v1alpha1.PastReboot{took(1, 30, 500, 70), took(2, 40, 50, 80), took(900, 20, 60, 90)}, [5]int{2, 30, 60, 80, 3}},
		"the lower one of two in the middle":            {[]v1alpha1.PastReboot{took(2, 40, 50, 90), took(1, 30, 60, 70)}, [5]int{1, 30, 50, 70, 2}},
		"failed and unmeasured reboots do not count":    {[]v1alpha1.PastReboot{aborted, unmeasured, took(0, 30, 50, 70)}, [5]int{0, 30, 50, 70, 1}},
		"settle is at least that of the spec":           {[]v1alpha1.PastReboot{took(0, 30, 50, 5)}, [5]int{0, 30, 50, 60, 1}},
		"clocks that disagree make no duration shorter": {[]v1alpha1.PastReboot{took(-9, 30, 50, 70)}, [5]int{0, 30, 50, 70, 1}},
	}
	leads := policy(func(p *v1alpha1.RebootPolicy) {
		p.Spec.Drain = &v1alpha1.Drain{LeadTime: &v1alpha1.Duration{Duration: 10 * time.Minute}}
	})
	if d := forecast.Expect(leads); d.Drain.Duration != 12*time.Minute {
		t.Errorf("with a lead time of 10m a drain is assumed to last %s", d.Drain.Duration)
	}
	leads.Status.History = []v1alpha1.PastReboot{took(0, 30, 50, 70)}
	if d := forecast.Expect(leads); d.Drain.Duration != 10*time.Minute {
		t.Errorf("no drain of the history had the lead time of 10m, and one is expected to last %s", d.Drain.Duration)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			d := forecast.Expect(policy(func(p *v1alpha1.RebootPolicy) { p.Status.History = tc.history }))
			got := [5]int{int(d.Before.Seconds()), int(d.Drain.Seconds()), int(d.Reboot.Seconds()), int(d.Settle.Seconds()), d.Measured}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
