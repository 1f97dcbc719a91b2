package plan_test

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/gates"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// TestNodeOf checks what is read of a Node. Reading cannot fail (behaviour 54).
func TestNodeOf(t *testing.T) {
	cp := label("node-role.kubernetes.io/master", "")
	active := protocol.Grant{Policy: "workers", Seq: 1, BootID: "a-boot-1", State: protocol.GrantActive, At: metav1.NewTime(evening)}
	draining := protocol.Progress{Seq: 1, Phase: protocol.PhaseDraining, BootID: "a-boot-1", At: metav1.NewTime(evening)}
	yesterday := evening.Add(-24 * time.Hour)
	cases := map[string]struct {
		node *corev1.Node
		want record.Node
	}{
		"people are logged in on a drained host": {
			&corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeDrained, Status: corev1.ConditionTrue, Reason: "PeopleLoggedIn", LastTransitionTime: metav1.NewTime(evening)},
			}}},
			record.Node{PeopleSince: evening},
		},
		"a drained host without people": {
			&corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeDrained, Status: corev1.ConditionTrue, Reason: "Drained", LastTransitionTime: metav1.NewTime(evening)},
			}}},
			record.Node{},
		},
		"an empty Node: not Ready, needs no reboot": {&corev1.Node{}, record.Node{}},
		"a node in service": {newHost("a").node, record.Node{
			Name: "a", BootID: "a-boot-1", Ready: true, ReadySince: yesterday,
			Required: corev1.ConditionFalse, RequiredReason: v1alpha1.ReasonUpToDate, RequiredSince: yesterday,
		}},
		"everything": {
			needy("a", cp, cordoned, deleting, annotated(v1alpha1.AnnotationPaused, "true"), nodeCondition(corev1.NodeReady, corev1.ConditionUnknown, 0),
				notReportedBack(minute), nodeCondition(v1alpha1.NodeRebootPermitted, corev1.ConditionTrue, 0),
				tainted("karpenter.sh/disrupted", corev1.TaintEffectNoSchedule), tainted(v1alpha1.TaintPending, corev1.TaintEffectPreferNoSchedule),
				grant(1, protocol.GrantActive), progress(1, protocol.PhaseDraining), agentBlocking(`{"reason":"Inhibited","message":"dpkg"}`)).node,
			record.Node{
				Name: "a", Labels: map[string]string{"node-role.kubernetes.io/master": ""}, ControlPlane: true, Deleting: true, Deleter: "Karpenter", Cordoned: true, Pending: corev1.TaintEffectPreferNoSchedule,
				BootID: "a-boot-1", ReadySince: evening, Required: corev1.ConditionTrue, RequiredReason: v1alpha1.ReasonUpdateStaged,
				RequiredSince: evening.Add(-time.Hour), Maintenance: true, MaintenanceSince: evening.Add(minute),
				Permitted: &corev1.NodeCondition{Type: v1alpha1.NodeRebootPermitted, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(evening)},
				BlockedBy: []protocol.Blocker{{Reason: v1alpha1.ReasonInhibited, Message: "dpkg"}},
				Record:    protocol.Record{Grant: &active, Progress: &draining},
			},
		},
		"a reason of the need that would make a grant unreadable": {
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
				{Type: v1alpha1.NodeRebootRequired, Status: corev1.ConditionTrue, Reason: "no reason"},
			}}},
			record.Node{Name: "a", Required: corev1.ConditionTrue},
		},
		"a corrupt grant permits nothing": {
			bare(annotated(v1alpha1.AnnotationGrant, `{"policy":"p","seq":1,"bootID":"b","state":"Maybe"}`)),
			record.Node{Name: "a", Unreadable: `annotation reboot-operator.io/grant: unknown state "Maybe"`},
		},
		"a corrupt progress": {
			bare(annotated(v1alpha1.AnnotationProgress, `{"seq":1,"phase":"Resting","bootID":"b"}`)),
			record.Node{Name: "a", Unreadable: `annotation reboot-operator.io/progress: unknown phase "Resting"`},
		},
		"both corrupt": {
			bare(annotated(v1alpha1.AnnotationGrant, "["), annotated(v1alpha1.AnnotationProgress, strings.Repeat("x", 40000))),
			record.Node{Name: "a", Unreadable: "annotation reboot-operator.io/progress: 40000 bytes are too many"},
		},
		"a long report is cut to fit events and the status": {
			bare(agentBlocking(`{"reason":"Inhibited","message":"dpkg"},{"reason":"CoordinatorConflict","message":"` + strings.Repeat("x", 600) + `"}`)),
			record.Node{Name: "a", BlockedBy: []protocol.Blocker{
				{Reason: v1alpha1.ReasonInhibited, Message: "dpkg"}, {Reason: v1alpha1.ReasonCoordinatorConflict, Message: strings.Repeat("x", 509) + "…"},
			}},
		},
		"the message of a grant is one short line": {
			bare(annotated(v1alpha1.AnnotationGrant, protocol.Grant{
				Policy: "workers", Seq: 1, BootID: "a-boot-1", State: protocol.GrantActive, At: metav1.NewTime(evening), Message: "a\n" + strings.Repeat("x", 600),
			}.String())),
			record.Node{Name: "a", Record: protocol.Record{Grant: &protocol.Grant{
				Policy: "workers", Seq: 1, BootID: "a-boot-1", State: protocol.GrantActive, At: metav1.NewTime(evening), Message: "a " + strings.Repeat("x", 507) + "…",
			}}},
		},
		"the problem of an agent is one short line": {
			bare(annotated(v1alpha1.AnnotationReport, `{"preflight":{"policy":"p","revision":"r","bootID":"b","problem":"a\n`+strings.Repeat("x", 600)+`"}}`)),
			record.Node{Name: "a", PreflightReport: &protocol.PreflightReport{
				Policy: "p", Revision: "r", BootID: "b", Problem: "a " + strings.Repeat("x", 507) + "…",
			}},
		},
		"a corrupt report blocks": {
			bare(annotated(v1alpha1.AnnotationReport, "no")),
			record.Node{Name: "a", BlockedBy: []protocol.Blocker{{
				Reason:  v1alpha1.ReasonRecordUnreadable,
				Message: "annotation reboot-operator.io/report: invalid character 'o' in literal null (expecting 'u')",
			}}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.want.Annotations, tc.want.Taints = tc.node.Annotations, tc.node.Spec.Taints
			same(t, "node", tc.want, record.Of(tc.node), cmpopts.EquateEmpty(), cmpopts.IgnoreUnexported(record.Node{}), cmpopts.IgnoreFields(protocol.Record{}, "GrantErr", "ProgressErr"))
		})
	}
}

// bare returns a Node without labels and status, with the annotations that the options set.
func bare(options ...func(*host)) *corev1.Node {
	h := &host{name: "a", node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}
	for _, o := range options {
		o(h)
	}
	return h.node
}

// FuzzNodeOf checks that no annotation causes a panic or permits anything (behaviour 54), and that
// the messages about it can be written. One node's agent must not stop the reboots of all.
func FuzzNodeOf(f *testing.F) {
	f.Add(`{"policy":"workers","seq":1,"bootID":"a-boot-1","state":"Active","at":null}`, `{"seq":1,"phase":"Draining","bootID":"a-boot-1","at":"2026-06-01T21:00:00Z"}`, "null", "true", "")
	f.Add("", "[]", `{"blockedBy":[{"reason":"Inhibited"}]}`, "failed: disk", "repaired")
	f.Add("", "", `{"blockedBy":[{"reason":"a b","message":"\ud800"},{"reason":"`+strings.Repeat("x", 65)+`"}]}`, "false", strings.Repeat("x", 600))
	f.Add("", `{"seq":1,"phase":"Aborted","bootID":"a-boot-1","failures":1,"reason":"DrainTimedOut","message":"<","at":"2026-06-01T21:00:00Z"}`, "", "", "")
	const ended = `{"seq":1,"phase":"Aborted","bootID":"b","at":"2026-06-01T21:00:00Z"}`
	pods := `{"count":7,"pods":[{"pod":"a/b","why":"` + strings.Repeat("x", 1000) + `"}]}`
	f.Add(gates.PodsOf(policy("workers", waitsForPods)).Preflight(), ended, `{"preflight":`+strings.TrimSuffix(gates.PodsOf(policy("workers")).Preflight(), "}")+`,"bootID":"a-boot-1","kept":`+pods+`}}`, "", "")
	f.Add("", ended, `{"preflight":`+strings.TrimSuffix(gates.PodsOf(policy("workers", waitsForPods)).Preflight(), "}")+`,"bootID":"a-boot-1","blocking":`+pods+`,"problem":"\ud800"}}`, "", "")
	f.Fuzz(func(t *testing.T, grant, progress, report, answer, value string) {
		h := needy("a", annotated(v1alpha1.AnnotationGrant, grant), annotated(v1alpha1.AnnotationProgress, progress),
			annotated(v1alpha1.AnnotationReport, report), annotated(v1alpha1.AnnotationHooks, report), annotated("x.io/hook", answer),
			annotated(v1alpha1.AnnotationPreflight, grant))
		for _, s := range []situation{
			one(policy("workers"), h), one(policy("workers", holding(1, entry("a", 1))), h),
			one(policy("workers", hooked("x.io/hook"), holding(1, entry("a", 1))), h), one(policy("workers", resume(value)), h),
			one(policy("workers", waitsForPods), h),
		} {
			p := s.plan()
			if len(p.Ledger.Own()) > 1 {
				t.Errorf("one node, but a ledger of %v", p.Ledger.Own())
			}
			for _, b := range p.Blocked {
				fitsACondition(t, b.Reason, "")
			}
			for _, d := range p.Decisions {
				fitsACondition(t, d.Reason, d.Message)
			}
			fitsACondition(t, p.Halt.Reason, p.Halt.Message)
		}
	})
}

// fitsACondition checks that a message fits into a condition, and into an event with some more
// text.
func fitsACondition(t *testing.T, reason v1alpha1.Reason, message string) {
	t.Helper()
	odd := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }
	if len(reason) > 64 || strings.ContainsFunc(string(reason), odd) || len(message) > 900 || !utf8.ValidString(message) {
		t.Errorf("%d bytes: %q: %q", len(message), reason, message)
	}
}

// TestNodeOf_TakesTheWorstConditionOfOneType checks that a node is down if any of several
// conditions of one type says so. The API server accepts such duplicates.
func TestNodeOf_TakesTheWorstConditionOfOneType(t *testing.T) {
	down := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionFalse}
	up := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue}
	for name, conditions := range map[string][]corev1.NodeCondition{"down first": {down, up}, "down last": {up, down}} {
		t.Run(name, func(t *testing.T) {
			n := record.Of(&corev1.Node{Status: corev1.NodeStatus{Conditions: conditions}})
			if !n.Unavailable() {
				t.Error("a node with one Ready condition that is not True counts as available")
			}
		})
	}
}
