package status_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/attention"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	. "github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/status"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// cordoned makes the node cordoned for some time, as the node controller records it.
func cordoned(ago time.Duration) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: new(Ago(ago))}}
	}
}

// failedDrain makes the node's drain given up some time ago.
func failedDrain(seq int64, ago time.Duration) func(*corev1.Node) {
	return Progressed(seq, protocol.PhaseAborted, ago, func(p *protocol.Progress) {
		p.Failures, p.Reason, p.Message = 1, v1alpha1.ReasonDrainTimedOut, "The drain was given up: default/db-0 stayed."
	})
}

// blocked makes the agent report an obstacle to the reboot.
func blocked(reason v1alpha1.Reason, message string) func(*corev1.Node) {
	return Annotated(v1alpha1.AnnotationReport, fmt.Sprintf(`{"blockedBy":[{"reason":%q,"message":%q}]}`, reason, message))
}

// askedHook makes the node run a before-hook that has not answered for some time.
func askedHook(policy string, seq int64, ago time.Duration) func(*corev1.Node) {
	return func(n *corev1.Node) {
		phase := protocol.BeginHooks(v1alpha1.LedgerEntry{Node: n.Name, Seq: seq}, policy, n.Status.NodeInfo.BootID, v1alpha1.HooksBefore,
			[]v1alpha1.AnnotationKey{"example.com/backup"}, Ago(ago).Time)
		n.Annotations[v1alpha1.AnnotationHooks] = phase.String()
	}
}

// TestAttention tests that nothing looks calm while something needs a person, and that everything
// else does.
func TestAttention(t *testing.T) {
	hooked := Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Hooks = &v1alpha1.Hooks{Before: []v1alpha1.AnnotationKey{"example.com/backup"}}
	})
	one := func(p v1alpha1.RebootPolicy, nodes ...corev1.Node) fleet.Fleet {
		return fleet.New([]v1alpha1.RebootPolicy{p}, nodes, Now)
	}
	lease := func(f fleet.Fleet, holder string, renewed time.Duration) fleet.Fleet {
		f.Manager = fleet.ManagerOf([]coordinationv1.Lease{{
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: new(metav1.NewMicroTime(Now.Add(-renewed)))},
		}}, nil)
		return f
	}
	unreported := func(n *corev1.Node) { n.Status.Conditions = n.Status.Conditions[:1] }
	needs := Needs(2 * time.Hour)
	controlPlane := func(n *corev1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" }
	due := func(d time.Duration) func(*v1alpha1.RebootPolicy) {
		return Spec(func(s *v1alpha1.RebootPolicySpec) { s.Deadline = &v1alpha1.Duration{Duration: d} })
	}
	bare := func(name string, options ...func(*corev1.Node)) corev1.Node {
		return Node(name, "workers", append(options, blocked(v1alpha1.ReasonCoordinatorConflict, name+" is active"))...)
	}
	never := Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Blackouts = []v1alpha1.Blackout{{Name: "long", From: "2026-01-01", To: "2029-01-01"}}
	})
	canary := func(n *corev1.Node) { n.Labels["ring"] = "canary" }
	ringed := Spec(func(s *v1alpha1.RebootPolicySpec) {
		s.Rings = []v1alpha1.Ring{{
			Name: "canary", NodeSelector: v1alpha1.LabelSelector{MatchLabels: map[string]string{"ring": "canary"}}, Soak: &v1alpha1.Duration{Duration: 4 * time.Hour},
		}}
	})
	everything := Spec(func(s *v1alpha1.RebootPolicySpec) { s.NodeSelector = &v1alpha1.LabelSelector{} })
	cases := map[string]struct {
		fleet fleet.Fleet
		// want holds the kind, the nodes, a part of the message and the command of each notice, in
		// order.
		want []string
	}{
		"nothing to do":   {one(Policy("workers"), Node("n1", "workers")), nil},
		"a closed window": {one(Policy("workers", Weeknights), Node("n1", "workers", needs)), nil},
		"a failed drain outside the window": {
			one(Policy("workers", Weeknights), Node("n1", "workers", needs, Granted("workers", 1, 2*time.Hour), failedDrain(1, time.Hour))),
			[]string{"Failed [n1] n1 was not rebooted (DrainTimedOut): The drain was given up: default/db-0 stayed | kubectl reboot explain n1"},
		},
		"a failed drain that backs off": {
			one(Policy("workers"), Node("n1", "workers", needs, Granted("workers", 1, 10*time.Minute), failedDrain(1, time.Minute))),
			[]string{"Failed [n1] ; the next attempt may begin Mon 2026-11-23 15:52:00 UTC | kubectl reboot retry n1"},
		},
		"a cordon of two hours that uses up the limit": {
			one(Policy("workers"), Node("n1", "workers", cordoned(2*time.Hour)), Node("n2", "workers", needs)),
			[]string{"Unavailable [n1] n1 is cordoned since Mon 2026-11-23 13:48:00 UTC and uses up the limit of policy workers: other nodes wait for it | kubectl uncordon n1"},
		},
		"a forgotten cordon while the window is closed": {
			one(Policy("workers", Weeknights), Node("n1", "workers", cordoned(2*time.Hour)), Node("n2", "workers", needs)),
			[]string{"Unavailable [n1] n1 is cordoned | kubectl uncordon n1"},
		},
		"a cordon of a minute": {one(Policy("workers"), Node("n1", "workers", cordoned(time.Minute)), Node("n2", "workers", needs)), nil},
		"a cordon that leaves room": {
			one(Policy("workers", AtMost("2"), Weeknights), Node("n1", "workers", cordoned(2*time.Hour)), Node("n2", "workers", needs)), nil,
		},
		"a control-plane node that is down": {
			one(Policy("workers", AtMost("2")), Node("n1", "workers", controlPlane, Condition(corev1.NodeReady, corev1.ConditionUnknown, "NodeStatusUnknown", 3*time.Hour)), Node("n2", "workers", controlPlane, needs)),
			[]string{"Unavailable [n1] n1 is not Ready since Mon 2026-11-23 12:48:00 UTC: other control-plane nodes of policy workers wait for it | kubectl describe node n1"},
		},
		"a control-plane node that went down just now": {
			one(Policy("workers", AtMost("2")), Node("n1", "workers", controlPlane, NotReady), Node("n2", "workers", controlPlane, needs)), nil,
		},
		"a control-plane node that is down, and a worker waits": {
			one(Policy("workers", AtMost("2"), Weeknights), Node("n1", "workers", controlPlane, Condition(corev1.NodeReady, corev1.ConditionUnknown, "NodeStatusUnknown", 3*time.Hour)), Node("n2", "workers", needs)), nil,
		},
		"a cordoned node that waits for itself only": {
			one(Policy("workers", Weeknights), Node("n1", "workers", needs, cordoned(2*time.Hour)), Node("n2", "workers")), nil,
		},
		"a deadline that is near": {
			one(Policy("workers", Weeknights, due(150*time.Minute)), Node("n1", "workers", needs), Node("n2", "workers", needs)),
			[]string{"DeadlineNear [] policy workers: | kubectl reboot forecast workers"},
		},
		"a deadline that is far away": {one(Policy("workers", Weeknights, due(48*time.Hour)), Node("n1", "workers", needs)), nil},
		"an urgent period that is over": {
			one(Policy("workers", Weeknights, Spec(func(s *v1alpha1.RebootPolicySpec) {
				s.Urgent = &v1alpha1.Urgent{All: &v1alpha1.UrgentPeriod{Until: Ago(time.Hour), Reason: "CVE-2026-12345"}}
			})), Node("n1", "workers", needs)), nil,
		},
		"an invalid policy that keeps nodes from another one": {
			fleet.New([]v1alpha1.RebootPolicy{Policy("low"), Policy("high", Weeknights, Spec(func(s *v1alpha1.RebootPolicySpec) {
				s.NodeSelector, s.Priority, s.Windows[0].TimeZone = nil, 5, "Mars/Olympus"
			}), func(p *v1alpha1.RebootPolicy) {
				p.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionAccepted, Status: metav1.ConditionFalse, Reason: string(v1alpha1.ReasonInvalid), ObservedGeneration: 1}}
			})}, []corev1.Node{Node("n1", "low")}, Now),
			[]string{
				"Invalid [] policy high is not in force: | kubectl edit rbp high",
				"Conflict [n1] policy high is invalid and keeps 1 node of policy low, which has a lower priority: no reboot is granted there | kubectl edit rbp high",
			},
		},
		"five causes of one reason": {
			one(Policy("workers"), bare("a", needs), bare("b", needs), bare("c", needs), bare("d", needs), bare("e", needs)),
			[]string{
				"Blocked [a] a: CoordinatorConflict: a is active | kubectl reboot explain a", "Blocked [b] b: CoordinatorConflict: b is active | kubectl reboot explain b", "Blocked [c] c: CoordinatorConflict: c is active | kubectl reboot explain c",
				"Blocked [d e] d, e: CoordinatorConflict: for other causes | kubectl reboot explain d",
			},
		},
		"a ring whose node was deleted during its reboot": {
			one(Policy("workers", AtMost("2"), ringed, func(p *v1alpha1.RebootPolicy) {
				p.Status.History = []v1alpha1.PastReboot{{
					Node: "c", Seq: 1, Ring: "canary", Result: v1alpha1.RebootLost, Reason: v1alpha1.ReasonNodeGoneInReboot, GrantedAt: Ago(2 * time.Hour), EndedAt: Ago(time.Hour),
				}}
			}), Node("n1", "workers", needs)),
			[]string{"Blocked [n1] n1: RingWaits: waiting for ring canary: Node c was deleted during its reboot | kubectl reboot explain n1"},
		},
		"a canary that went down after its reboot": {
			one(Policy("workers", AtMost("2"), ringed), Node("c", "workers", canary, Granted("workers", 1, 2*time.Hour), Booted(2*time.Hour), func(n *corev1.Node) {
				n.Annotations[v1alpha1.AnnotationGrant] = protocol.Grant{
					Policy: "workers", Seq: 1, BootID: n.Status.NodeInfo.BootID, State: protocol.GrantFinished, At: Ago(90 * time.Minute),
				}.String()
			}, Condition(corev1.NodeReady, corev1.ConditionUnknown, "NodeStatusUnknown", time.Hour)), Node("n1", "workers", needs)),
			[]string{"Blocked [n1] n1: RingWaits: waiting for ring canary: c is not done (NodeUnavailable) | kubectl reboot explain n1"},
		},
		"a canary that soaks": {
			one(Policy("workers", AtMost("2"), ringed), Node("c", "workers", canary, needs), Node("n1", "workers", needs)),
			[]string{"ManagerLags [c] nothing blocks c | kubectl get pods"},
		},
		"windows that never open": {
			one(Policy("workers", Weeknights, never), Node("n1", "workers", needs)),
			[]string{"Blocked [n1] n1: Blackout: blackout long is in force; none opens within a year | kubectl reboot explain n1"},
		},
		"windows that never open, and nothing to do": {one(Policy("workers", Weeknights, never), Node("n1", "workers")), nil},
		"a limit of 0":                    {one(Policy("workers", AtMost("0")), Node("n1", "workers", needs)), []string{"Blocked [] policy workers grants nothing: maxUnavailable is 0 | kubectl edit rbp workers"}},
		"a limit of 0, and nothing to do": {one(Policy("workers", AtMost("0")), Node("n1", "workers")), nil},
		"no policy":                       {fleet.New(nil, []corev1.Node{Node("n1", "workers", needs)}, Now), []string{"NoPolicy [n1] the cluster has no RebootPolicy, so no node is rebooted | kubectl reboot status"}},
		"neither policies nor nodes":      {fleet.New(nil, nil, Now), nil},
		"a cordon that nobody waits for":  {one(Policy("workers"), Node("n1", "workers", cordoned(2*time.Hour)), Node("n2", "workers")), nil},
		"a node that is down": {
			one(Policy("workers"), Node("n1", "workers", Condition(corev1.NodeReady, corev1.ConditionUnknown, "NodeStatusUnknown", 3*time.Hour)), Node("n2", "workers", needs)),
			[]string{"Unavailable [n1] n1 is not Ready since | kubectl describe node n1"},
		},
		"a hook that does not answer": {
			one(Policy("workers", hooked, Holds("n1", 1, 20*time.Minute)), Node("n1", "workers", needs, askedHook("workers", 1, 15*time.Minute))),
			[]string{"HookUnanswered [n1] n1: hooks have not answered since Mon 2026-11-23 15:33:00 UTC | kubectl annotate node n1 example.com/backup=true --overwrite"},
		},
		"a hook that was just asked": {
			one(Policy("workers", hooked, Holds("n1", 1, 2*time.Minute)), Node("n1", "workers", needs, askedHook("workers", 1, time.Minute))), nil,
		},
		"a pod that cannot be drained": {
			one(Policy("workers"), Node("n1", "workers", needs, blocked(v1alpha1.ReasonCoordinatorConflict, "locksmithd is active"))),
			[]string{"Blocked [n1] n1: CoordinatorConflict: locksmithd is active | kubectl reboot explain n1"},
		},
		"a silent agent": {
			one(Policy("workers"), Node("n1", "workers", unreported)),
			[]string{"AgentsNeeded [n1] it is unknown whether n1 needs a reboot | kubectl reboot explain n1"},
		},
		"a condition that a reboot did not end": {
			one(Policy("workers"), Node("n1", "workers", Condition(v1alpha1.NodeRebootRequired, corev1.ConditionFalse, "ConditionIgnored", time.Hour))),
			[]string{"Blocked [n1] n1: policy workers ignores a condition of its nodeConditions that lasts | kubectl reboot explain n1"},
		},
		"a node that joined just now": {
			one(Policy("workers"), Node("n1", "workers", unreported, Condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", 10*time.Second))), nil,
		},
		"a node that no policy selects": {
			one(Policy("workers"), Node("n1", "others", needs)), []string{
				"NoPolicy [n1] no policy selects n1, but a reboot is needed there | kubectl reboot explain n1", "NoNodes [] policy workers governs no node | kubectl edit rbp workers",
			},
		},
		"a reboot that no policy finishes": {
			fleet.New([]v1alpha1.RebootPolicy{Policy("workers")}, []corev1.Node{
				Node("n1", "others", needs, Granted("gone", 1, time.Hour), Progressed(1, protocol.PhaseRebooting, time.Hour)), Node("n2", "workers"),
			}, Now),
			[]string{
				"NoPolicy [n1] n1: the policy that granted this reboot was deleted, and no policy selects the node; create a RebootPolicy | kubectl reboot explain n1",
			},
		},
		"a policy that only tries": {
			one(Policy("workers", Spec(func(s *v1alpha1.RebootPolicySpec) { s.Mode = v1alpha1.ModeDryRun })), Node("n1", "workers", needs)),
			[]string{"DryRun [] policy workers is in mode DryRun, so it grants nothing; 1 node waits | kubectl patch rbp workers --type=merge"},
		},
		"two conflicts of one policy": {
			fleet.New([]v1alpha1.RebootPolicy{Policy("all", everything), Policy("blue"), Policy("green")}, []corev1.Node{
				Node("n1", "blue"), Node("n2", "green", needs), Node("n3", "green"),
			}, Now),
			[]string{
				"Conflict [n1] 1 node is not rebooted (0 need a reboot): policies all, blue select n1 with the same priority | kubectl reboot explain n1",
				"Conflict [n2 n3] 2 nodes are not rebooted (1 needs a reboot): policies all, green select n2, n3 with the same priority | kubectl reboot explain n2",
			},
		},
		"a manager that runs": {lease(one(Policy("workers")), "m", 3*time.Second), nil},
		"a manager whose lease is stale": {
			lease(one(Policy("workers"), Node("n1", "workers", needs)), "m", 10*time.Minute),
			[]string{"ManagerDown [] no manager has run since Mon 2026-11-23 15:38:00 UTC | kubectl get pods -A -l app.kubernetes.io/name=reboot-operator"},
		},
		"a manager that gave its lease back": {lease(one(Policy("workers")), "", 30*time.Second), []string{"ManagerDown [] no manager has run since | kubectl get pods"}},
		"a manager whose clock is ahead": {
			lease(one(Policy("workers", Weeknights), Node("n1", "workers", needs)), "m", -10*time.Minute),
			[]string{"ManagerDown [] it is unknown whether a manager runs: its Lease was renewed at Mon 2026-11-23 15:58:00 UTC, which is in the future; compare the clocks | kubectl get pods"},
		},
		"a manager that hands over": {lease(one(Policy("workers")), "", 3*time.Second), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := status.Of(tc.fleet).Attention()
			for i, n := range got {
				text := fmt.Sprintf("%s %s %s | %s", n.Kind, n.Nodes, n.Message, n.Command)
				if i >= len(tc.want) {
					t.Errorf("also: %s", text)
					continue
				}
				head, rest, _ := strings.Cut(tc.want[i], "] ")
				message, command, _ := strings.Cut(rest, " | ")
				if !strings.HasPrefix(text, head+"] ") || !strings.Contains(n.Message, message) || !strings.HasPrefix(n.Command, command) {
					t.Errorf("got  %s\nwant %s", text, tc.want[i])
				}
			}
			if len(got) < len(tc.want) {
				t.Errorf("missing: %s", tc.want[len(got):])
			}
		})
	}
}

// TestAttention_ManyNodes tests that a fleet with the same problem everywhere fits on a screen.
func TestAttention_ManyNodes(t *testing.T) {
	var nodes []corev1.Node
	for i := range 200 {
		nodes = append(nodes, Node(fmt.Sprintf("n%03d", i), "workers", Needs(2*time.Hour), Granted("workers", int64(i+1), 2*time.Hour), failedDrain(int64(i+1), time.Hour)))
	}
	p := Policy("workers", Weeknights, Spec(func(s *v1alpha1.RebootPolicySpec) { s.MaxFailures = new(int32(1000)) }))
	p.Status.Seq = 200
	lines := status.Of(fleet.New([]v1alpha1.RebootPolicy{p}, nodes, Now)).Lines(terminal.Look{Zone: time.UTC})
	failed := slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "! ") })
	if len(failed) != 4 || !strings.Contains(failed[3], "197 nodes were also not rebooted (DrainTimedOut): n003, n004, n005, n006, n007 and 192 more") {
		t.Error(strings.Join(failed, "\n"))
	}
}

// TestOf_AClosedBudget tests a node whose drain a closed PodDisruptionBudget has made fail, and one
// that is tried next. One notice names the failure, and the estimate says on what it depends.
func TestOf_AClosedBudget(t *testing.T) {
	w := Policy("workers")
	question, _ := protocol.ParsePreflight(map[string]string{v1alpha1.AnnotationPreflight: gates.PodsOf(&w).Preflight()})
	failed := Progressed(1, protocol.PhaseAborted, time.Minute, func(p *protocol.Progress) {
		p.Failures, p.Reason, p.Message, p.Try = 1, v1alpha1.ReasonUndrainablePod, "The drain took longer than 1m0s.", true
	})
	nodes := []corev1.Node{Node("n1", "workers", Needs(2*time.Hour), Granted("workers", 1, 10*time.Minute), failed), Node("n2", "workers", Needs(time.Hour))}
	found := map[string]protocol.PreflightReport{}
	for _, n := range nodes {
		found[n.Name] = protocol.PreflightReport{
			Policy: question.Policy, Revision: question.Revision, BootID: n.Status.NodeInfo.BootID,
			Closed: &protocol.NamedPods{Count: 1, Pods: []protocol.NamedPod{{Pod: "shop/mail-0"}}},
		}
	}
	s := status.Of(fleet.New([]v1alpha1.RebootPolicy{w}, nodes, Now).Looked(found))
	if all := s.Attention(); len(all) != 2 || all[0].Kind != attention.Failed || all[0].Command != "kubectl reboot retry n1" || all[1].Kind != status.ManagerLags {
		t.Errorf("%+v", all)
	}
	if bar := s.Lines(terminal.Look{Zone: time.UTC, Width: 200})[0]; !strings.Contains(bar, ", all in about 12m, if 2 nodes with closed budgets can be drained") {
		t.Error(bar)
	}
}
