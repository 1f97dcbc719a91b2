package history_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	. "github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/hack/terminaltest"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/history"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

func lasted(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }

func remembers(past ...v1alpha1.PastReboot) func(*v1alpha1.RebootPolicy) {
	return func(p *v1alpha1.RebootPolicy) { p.Status.History = past }
}

// policies returns policies that recorded a success, a failed attempt, a deleted node, and a node
// that moved to another policy.
func policies() []v1alpha1.RebootPolicy {
	return []v1alpha1.RebootPolicy{
		Policy("workers", remembers(
			v1alpha1.PastReboot{
				Node: "n1", Seq: 3, Result: v1alpha1.RebootAborted, Reason: v1alpha1.ReasonDrainTimedOut, Message: "default/db-0 is protected by a PodDisruptionBudget",
				GrantedAt: Ago(50 * time.Hour), EndedAt: Ago(49*time.Hour + 40*time.Minute), Drain: lasted(20 * time.Minute), FromVersion: "4459.2.0",
			},
			v1alpha1.PastReboot{
				Node: "n1", Seq: 4, Result: v1alpha1.RebootSucceeded, Reason: v1alpha1.ReasonUpdateStaged, FromVersion: "4459.2.0", ToVersion: "4459.2.1",
				GrantedAt: Ago(48 * time.Hour), EndedAt: Ago(47*time.Hour + 53*time.Minute), Drain: lasted(150 * time.Second), Reboot: lasted(200 * time.Second), Settle: lasted(time.Minute),
				PodsForced: 2,
			},
			v1alpha1.PastReboot{Node: "gone", Seq: 5, Result: v1alpha1.RebootLost, Reason: v1alpha1.ReasonNodeGone, Message: "the Node object was deleted, after it was sent to reboot at Sun 2026-11-22 13:49:00 UTC", GrantedAt: Ago(26 * time.Hour)},
		)),
		Policy("databases", remembers(v1alpha1.PastReboot{
			Node: "n1", Seq: 9, Result: v1alpha1.RebootSucceeded, Reason: v1alpha1.ReasonRequested, FromVersion: "4459.2.1", ToVersion: "4459.2.1",
			GrantedAt: Ago(40 * time.Hour), EndedAt: Ago(39 * time.Hour), Drain: lasted(5 * time.Second), Reboot: lasted(95 * time.Second), Settle: lasted(61 * time.Second),
		}, v1alpha1.PastReboot{
			Node: "n2", Seq: 10, Result: v1alpha1.RebootSucceeded, Reason: v1alpha1.ReasonSentinelPresent, FromVersion: "24.04", ToVersion: "24.04",
			FromKernel: "6.8.0-49-generic", ToKernel: "6.8.0-50-generic", GrantedAt: Ago(30 * time.Hour), EndedAt: Ago(29 * time.Hour),
		}, v1alpha1.PastReboot{
			Node: "n3", Seq: 11, Result: v1alpha1.RebootSucceeded, Reason: v1alpha1.ReasonUpdateStaged, FromVersion: "42", ToVersion: "42",
			Message: "quay.io/os:42@sha256:0a1b2c → quay.io/os:42@sha256:3d4e5f", GrantedAt: Ago(28 * time.Hour), EndedAt: Ago(27 * time.Hour),
		})),
	}
}

func TestLines(t *testing.T) {
	cases := map[string]struct {
		nodes []string
		look  terminal.Look
	}{
		"one-node": {[]string{"n1"}, terminal.Look{}},
		"all":      {nil, terminal.Look{Width: 80}},
		"wide":     {nil, terminal.Look{Wide: true}},
		"colour":   {nil, terminal.Look{Theme: terminal.Theme{Color: true}}},
		"none":     {[]string{"n7", "n8"}, terminal.Look{Width: 40}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			tc.look.Zone = Berlin
			lines := history.Lines(history.Of(policies(), tc.nodes...), tc.look, tc.nodes...)
			terminaltest.Golden(t, name, lines)
		})
	}
}
