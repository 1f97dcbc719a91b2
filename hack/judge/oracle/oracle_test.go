package oracle_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge/oracle"
)

// TestOpen: windows on nights on which clocks change, by the letter of docs/policy.md.
func TestOpen(t *testing.T) {
	cases := map[string]struct {
		start    string
		duration time.Duration
		at       string
		want     bool
	}{
		"the start":                              {"02:30", time.Hour, "2026-06-01T00:30:00Z", true},
		"before the start":                       {"02:30", time.Hour, "2026-06-01T00:29:59Z", false},
		"the end":                                {"02:30", time.Hour, "2026-06-01T01:30:00Z", false},
		"a start that is skipped, after the gap": {"02:30", time.Hour, "2026-03-29T01:00:00Z", true},
		"a start that is skipped, before it":     {"02:30", time.Hour, "2026-03-29T00:59:59Z", false},
		"a start that is repeated, the first":    {"02:30", time.Hour, "2026-10-25T00:30:00Z", true},
		"a start that is repeated, the second":   {"02:30", time.Hour, "2026-10-25T01:30:00Z", false},
		"past midnight, the day before":          {"23:30", time.Hour, "2026-06-01T22:10:00Z", true},
		"as long as it says where clocks change": {"01:00", 90 * time.Minute, "2026-03-29T01:25:00Z", true},
		"and no longer":                          {"01:00", 90 * time.Minute, "2026-03-29T01:30:00Z", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, tc.at)
			if err != nil {
				t.Fatal(err)
			}
			w := v1alpha1.Window{Start: tc.start, Duration: metav1.Duration{Duration: tc.duration}, TimeZone: "Europe/Berlin"}
			if got := oracle.Open([]v1alpha1.Window{w}, nil, at); got != tc.want {
				t.Errorf("open at %s: %t", tc.at, got)
			}
		})
	}
}
