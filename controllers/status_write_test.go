package controllers

import (
	"encoding/json"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/hack/judge/definition"
)

// A Node whose values do not fit a status must not block the whole policy, whose ledger could not
// be written any more.
func TestStatusOf_CanBeWrittenForAnyReports(t *testing.T) {
	for name, value := range map[string]string{"rapid.seed": "1", "rapid.nofailfile": "true"} { // the same cases in each run
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	crd, err := definition.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		now := time.Date(2026, 6, 1, 22, 0, 0, 0, time.UTC)
		policy := v1alpha1.RebootPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RebootPolicy"},
			ObjectMeta: metav1.ObjectMeta{Name: "workers", UID: "p"},
			Spec: v1alpha1.RebootPolicySpec{
				Concurrency: &v1alpha1.Concurrency{MaxUnavailable: new(intstr.FromInt32(rapid.Int32Range(0, 4).Draw(t, "limit")))},
				Reboot:      &v1alpha1.Reboot{Settle: &v1alpha1.Duration{}},
			},
		}
		for range rapid.IntRange(1, 4).Draw(t, "passes") {
			nodes := rapid.SliceOfNDistinct(rapid.Custom(drawOddNode), 0, 5, func(n corev1.Node) string { return n.Name }).Draw(t, "nodes")
			s := snapshot.Of(&policy, []v1alpha1.RebootPolicy{policy}, snapshot.Views(nodes), now)
			after := policy.DeepCopy()
			after.Status = statusOf(&policy, plan.Of(s), s.Window, now)
			if err := crd.Refusal(t.Context(), &policy, after); err != nil {
				t.Fatalf("the status cannot be written: %v", err)
			}
			policy, now = *after, now.Add(time.Duration(rapid.IntRange(1, 100_000).Draw(t, "seconds"))*time.Second)
		}
	})
}

// OddNode is exported for the tests with a real API server.
var OddNode = rapid.Custom(drawOddNode)

// drawOddNode generates a Node whose record is right, wrong or nonsense.
func drawOddNode(t *rapid.T) corev1.Node {
	draw := func(label string, values ...string) string { return rapid.SampledFrom(values).Draw(t, label) }
	instant := func(label string) string {
		return draw(label, "2026-06-01T21:59:00Z", "2026-06-01T22:10:00Z", "2026-05-01T00:00:00Z", "2026-06-02T09:00:00Z", "2099-01-01T00:00:00Z",
			"1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00", "0000-01-01T00:00:00+14:00")
	}
	long := strings.Repeat("ü\x1b", 3000)
	record := func(fields ...string) string {
		var set []string
		for i := 0; i < len(fields); i += 2 {
			if rapid.IntRange(0, 12).Draw(t, fields[i]+" is there") > 0 {
				set = append(set, fmt.Sprintf("%q:%s", fields[i], fields[i+1]))
			}
		}
		return "{" + strings.Join(set, ",") + "}"
	}
	quoted := func(label string, values ...string) string {
		text, err := json.Marshal(draw(label, values...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	number := func() string {
		return draw("seq", "1", "2", "3", "7", "4294967297", "4611686018427387904", "0", "-1", "1.5")
	}
	boot := func() string { return quoted("boot", "boot-1", "boot-1", "boot-2", "", strings.Repeat("b", 200)) }
	reason := func() string { return quoted("reason", "", "HookFailed", "DrainTimedOut", "Custom", "no reason", long) }
	n := corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("node-%d", rapid.IntRange(1, 9).Draw(t, "name")), UID: types.UID(draw("uid", "u1", "u2")),
		Labels: map[string]string{
			v1alpha1.LabelOSID:      draw("system", "", "flatcar", strings.Repeat("o", 63)),
			v1alpha1.LabelOSGroup:   draw("channel", "", "stable", strings.Repeat("g", 63)),
			v1alpha1.LabelOSVersion: draw("version", "", "1.0", "1.0_odd", strings.Repeat("9", 63)),
		},
		Annotations: map[string]string{},
	}}
	for _, a := range [][2]string{
		{v1alpha1.AnnotationGrant, record("policy", quoted("policy", "workers", "workers", "other", "", strings.Repeat("p", 64)), "seq", number(), "bootID", boot(),
			"state", quoted("state", "Active", "Active", "Cancelled", "Finished", "Odd"), "at", fmt.Sprintf("%q", instant("grant")), "reason", reason(), "message", quoted("message", "", long), "need", reason())},
		{v1alpha1.AnnotationProgress, record("seq", number(), "phase", quoted("phase", "Draining", "Rebooting", "Aborted", "Odd"), "bootID", boot(), "cordoned", draw("cordoned", "true", "false"),
			"at", fmt.Sprintf("%q", instant("progress")), "drainStartedAt", fmt.Sprintf("%q", instant("drain")), "reason", reason(), "message", quoted("message", "", long),
			"failures", draw("failures", "0", "2", "2147483647", "-1"), "podsForced", draw("forced", "0", "3", "2147483647"))},
		{v1alpha1.AnnotationHooks, record("policy", quoted("policy", "workers", "other"), "seq", number(), "bootID", boot(), "stage", quoted("stage", "Before", "After"), "at", fmt.Sprintf("%q", instant("hooks")))},
		{v1alpha1.AnnotationReport, record("blockedBy", "["+record("reason", reason(), "message", quoted("message", "", long))+"]")},
		{v1alpha1.AnnotationPaused, draw("paused", "", "true", long)},
	} {
		if rapid.Bool().Draw(t, a[0]) {
			n.Annotations[a[0]] = a[1]
		}
	}
	n.Status.NodeInfo.BootID = draw("boot of the Node", "boot-1", "boot-2", "", strings.Repeat("b", 200))
	n.Spec.Unschedulable = rapid.Bool().Draw(t, "cordoned")
	for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, v1alpha1.NodeRebootRequired, corev1.NodeMaintenanceInProgress} {
		parsed, err := time.Parse(time.RFC3339, instant(string(kind)))
		if err != nil {
			t.Fatal(err)
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionStatus(draw("status", "True", "True", "False", "Unknown", "")), Reason: draw("reason", "UpdateStaged", "", long), Message: long,
			LastTransitionTime: metav1.NewTime(parsed),
		})
	}
	return n
}
