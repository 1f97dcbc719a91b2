package plan_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// gated asks gates of these names; "name?" is one with failurePolicy Allow, and ceph a gate of objects.
func gated(names ...string) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) {
		p.Spec.Gates = &v1alpha1.Gates{}
		for _, name := range names {
			if name == ceph {
				gatedByObject(p)
				continue
			}
			g := v1alpha1.PrometheusGate{Name: name, URL: "http://prometheus", Query: "up == 0"}
			if name[len(name)-1] == '?' {
				g.Name, g.FailurePolicy = name[:len(name)-1], v1alpha1.GateFailureAllow
			}
			p.Spec.Gates.Prometheus = append(p.Spec.Gates.Prometheus, g)
		}
	}
}

// gatedByObject asks a gate of objects, CephCluster/ceph.
func gatedByObject(p *v1alpha1.RebootPolicy) {
	if p.Spec.Gates == nil {
		p.Spec.Gates = &v1alpha1.Gates{}
	}
	p.Spec.Gates.Objects = []v1alpha1.ObjectGate{{APIVersion: "ceph.rook.io/v1", Kind: "CephCluster", Name: "ceph", Expression: "object.status.ready"}}
}

const ceph = "CephCluster/ceph"

func notReadyObject(name string) v1alpha1.GateStatus {
	return answer(name, v1alpha1.GateNotReady, "CephCluster ceph: the expression is false", 0)
}

// reported is what the policy's status reports of its gates.
func reported(gates ...v1alpha1.GateStatus) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) { p.Status.Gates = gates }
}

// answer is what a gate said at an instant counted from the evening.
func answer(name string, state v1alpha1.GateState, message string, since time.Duration) v1alpha1.GateStatus {
	return v1alpha1.GateStatus{Name: name, State: state, Message: message, At: metav1.NewTime(evening.Add(since))}
}

func quiet(name string) v1alpha1.GateStatus  { return answer(name, v1alpha1.GateClear, "", 0) }
func firing(name string) v1alpha1.GateStatus { return answer(name, v1alpha1.GateFiring, "up = 0", 0) }

func unreachable(name string) v1alpha1.GateStatus {
	return answer(name, v1alpha1.GateUnreachable, "no answer within 10s", 0)
}

// TestReboots_Gates: what gates report before a grant, and what they do to one that the agent has not begun.
func TestReboots_Gates(t *testing.T) {
	const unasked, alert, mute = "gate a of policy workers has not been asked yet", "gate a of policy workers: up = 0", "gate a of policy workers: no answer within 10s"
	const unreached = v1alpha1.ReasonGateUnreachable
	answers := func(all ...v1alpha1.GateStatus) []v1alpha1.GateStatus { return all }
	cases := map[string]struct {
		gates  string
		answer []v1alpha1.GateStatus
		// before is the objection to a grant; empty: it is given.
		before  v1alpha1.Reason
		message string
	}{
		"none":                        {"", nil, "", ""},
		"not asked yet":               {"a", nil, unreached, unasked},
		"not asked yet, and may fail": {"a?", nil, unreached, unasked},
		"another was asked":           {"a", answers(quiet("b")), unreached, unasked},
		"clear":                       {"a", answers(quiet("a")), "", ""},
		"firing":                      {"a", answers(firing("a")), v1alpha1.ReasonAlertFiring, alert},
		"firing, and may fail":        {"a?", answers(firing("a")), v1alpha1.ReasonAlertFiring, alert},
		"unreachable":                 {"a", answers(unreachable("a")), unreached, mute},
		"unreachable, and may fail":   {"a?", answers(unreachable("a")), "", ""},
		"one of two fires":            {"b a", answers(quiet("b"), firing("a")), v1alpha1.ReasonAlertFiring, alert},
		"one fires, which is worse than one that cannot be asked":       {"b a", answers(unreachable("b"), firing("a")), v1alpha1.ReasonAlertFiring, alert},
		"one cannot be asked, which is worse than one that was not yet": {"b a", answers(unreachable("a")), unreached, mute},
		"an object was not asked about yet":                             {"a " + ceph, answers(quiet("a")), unreached, "gate CephCluster/ceph of policy workers has not been asked yet"},
		"an object is ready, too":                                       {"a " + ceph, answers(quiet("a"), quiet(ceph)), "", ""},
		"an object is not ready": {
			"a " + ceph, answers(quiet("a"), notReadyObject(ceph)),
			v1alpha1.ReasonObjectNotReady, "gate CephCluster/ceph of policy workers: CephCluster ceph: the expression is false",
		},
		"an object cannot be read, which is never ignored": {
			"a? " + ceph, answers(unreachable("a"), unreachable(ceph)), unreached, "gate CephCluster/ceph of policy workers: no answer within 10s",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gates, notAsked := gated(strings.Fields(tc.gates)...), strings.HasSuffix(tc.message, "has not been asked yet")
			before := one(policy("workers", gates), needy("worker-1"))
			before.gates = tc.answer
			p := before.plan()
			same(t, "waits for gates", tc.gates != "", p.WaitsForGates)
			var got plan.Decision
			if len(p.Decisions) > 0 {
				got = p.Decisions[0]
			}
			if got.Reason != tc.before || got.Message != tc.message || len(p.Granted) > 0 != (tc.before == "") {
				t.Errorf("before a grant: %+v, granted %v", got, p.Granted)
			}
			same(t, "short-lived", notAsked, got.ShortLived)
			action := func(node ...func(*host)) plan.Action {
				granted := one(policy("workers", gates, holding(7, entry("worker-1", 7))), needy("worker-1", node...))
				granted.gates = tc.answer
				return granted.plan().Reboots[0].Action
			}
			published := grant(7, protocol.GrantActive)
			inLedger, onNode := plan.CancelGrant, plan.CancelGrant // a grant that the node has not been shown, and one that it has
			switch {
			case tc.before == "":
				inLedger, onNode = plan.PublishGrant, plan.Wait
			case notAsked:
				inLedger, onNode = plan.Wait, plan.Wait
			}
			same(t, "in the ledger", inLedger, action())
			same(t, "on the node", onNode, action(published))
			same(t, "draining", plan.Wait, action(published, progress(7, protocol.PhaseDraining)))
		})
	}
}

// TestReboots_WaitsForGates: nobody asks a gate for a node that something else keeps, or where none needs a reboot.
func TestReboots_WaitsForGates(t *testing.T) {
	closed := one(policy("workers", gated("a")), needy("worker-1"))
	closed.window = &window.State{}
	dry := one(policy("workers", gated("a"), dryRun), needy("worker-1"))
	dry.gates = []v1alpha1.GateStatus{quiet("a")}
	for name, tc := range map[string]struct {
		situation situation
		want      bool
	}{
		"a node that waits":               {one(policy("workers", gated("a")), needy("worker-1")), true},
		"no node needs a reboot":          {one(policy("workers", gated("a")), newHost("worker-1")), false},
		"the window is closed":            {closed, false},
		"the node is paused":              {one(policy("workers", gated("a")), needy("worker-1", annotated(v1alpha1.AnnotationPaused, "true"))), false},
		"the node backs off":              {one(policy("workers", gated("a")), needy("worker-1", progress(1, protocol.PhaseAborted, failed(1, v1alpha1.ReasonDrainTimedOut, "")))), false},
		"the policy only reports":         {dry, true},
		"a grant that has not begun":      {one(policy("workers", gated("a"), holding(7, entry("worker-1", 7))), needy("worker-1", grant(7, protocol.GrantActive))), true},
		"a drain has begun, nobody waits": {one(policy("workers", gated("a"), holding(7, entry("worker-1", 7))), needy("worker-1", grant(7, protocol.GrantActive), progress(7, protocol.PhaseDraining))), false},
		"another policy's node":           {one(policy("workers", gated("a"), selects("pool", "x")), needy("worker-1")), false},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.situation.plan()
			same(t, "waits for gates", tc.want, p.WaitsForGates)
			if !tc.want && p.Gates != nil {
				t.Errorf("reports %v", p.Gates)
			}
		})
	}
}

// TestReboots_GatesReported: status.gates changes with what gates report, and keeps since when they have.
func TestReboots_GatesReported(t *testing.T) {
	const before, now = -time.Hour, time.Duration(0)
	allow := "no answer within 10s; failurePolicy Allow lets reboots go on"
	for name, tc := range map[string]struct {
		gate                   string
		reported, answer, want []v1alpha1.GateStatus
	}{
		"not asked yet":         {gate: "a"},
		"the first answer":      {"a", nil, []v1alpha1.GateStatus{quiet("a")}, []v1alpha1.GateStatus{quiet("a")}},
		"the same again":        {"a", []v1alpha1.GateStatus{answer("a", v1alpha1.GateFiring, "up = 0", before)}, []v1alpha1.GateStatus{firing("a")}, []v1alpha1.GateStatus{answer("a", v1alpha1.GateFiring, "up = 0", before)}},
		"another state":         {"a", []v1alpha1.GateStatus{answer("a", v1alpha1.GateFiring, "up = 0", before)}, []v1alpha1.GateStatus{quiet("a")}, []v1alpha1.GateStatus{quiet("a")}},
		"another message":       {"a", []v1alpha1.GateStatus{answer("a", v1alpha1.GateFiring, "x", before)}, []v1alpha1.GateStatus{firing("a")}, []v1alpha1.GateStatus{firing("a")}},
		"a new leader":          {"a", []v1alpha1.GateStatus{answer("a", v1alpha1.GateFiring, "up = 0", before)}, nil, []v1alpha1.GateStatus{answer("a", v1alpha1.GateFiring, "up = 0", before)}},
		"a gate that is gone":   {"a", []v1alpha1.GateStatus{answer("b", v1alpha1.GateFiring, "up = 0", before)}, nil, nil},
		"a failure that counts": {"a", nil, []v1alpha1.GateStatus{unreachable("a")}, []v1alpha1.GateStatus{unreachable("a")}},
		"one that does not":     {"a?", nil, []v1alpha1.GateStatus{unreachable("a")}, []v1alpha1.GateStatus{answer("a", v1alpha1.GateUnreachable, allow, now)}},
		"one that does not, again": {
			"a?",
			[]v1alpha1.GateStatus{answer("a", v1alpha1.GateUnreachable, allow, before)},
			[]v1alpha1.GateStatus{unreachable("a")},
			[]v1alpha1.GateStatus{answer("a", v1alpha1.GateUnreachable, allow, before)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := one(policy("workers", gated(tc.gate), reported(tc.reported...)), needy("worker-1"), newHost("worker-2", notReady))
			s.gates = tc.answer
			same(t, "gates", tc.want, s.plan().Gates)
		})
	}
}

// TestReboots_GatesLetGo: nothing is granted unless each gate is clear, or may fail and cannot be asked.
func TestReboots_GatesLetGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSituation(t)
		s.gates = drawGates(t, s.policies[0])
		snapshot := s.snapshot()
		p := plan.Of(snapshot)
		state := map[string]v1alpha1.GateState{}
		for _, g := range snapshot.Gates {
			state[g.Name] = g.State
		}
		for _, name := range plan.GateNames(&snapshot.Policy.Spec) {
			mayFail := state[name] == v1alpha1.GateUnreachable && name == "may-fail"
			if len(p.Granted) > 0 && state[name] != v1alpha1.GateClear && !mayFail {
				t.Fatalf("granted %v although gate %s is %q\n%v", p.Granted, name, state[name], s)
			}
		}
	})
}
