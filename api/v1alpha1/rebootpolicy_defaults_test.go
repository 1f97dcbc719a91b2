package v1alpha1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// inForce holds the values that the accessors return.
type inForce struct {
	Mode           v1alpha1.Mode
	MaxUnavailable string
	TopologyKey    string
	Settle         time.Duration
	MaxFailures    int32
	DrainTimeout   time.Duration
	OnTimeout      v1alpha1.DrainTimeoutAction
	EmptyDirData   v1alpha1.PodDisposal
	UnmanagedPods  v1alpha1.PodDisposal
	RuleAction     v1alpha1.DrainAction
	RebootTimeout  time.Duration
	Inhibitors     v1alpha1.Obstacle
	Coordinators   v1alpha1.Obstacle
	WindowZone     string
	BlackoutZone   string
}

func TestDefaults(t *testing.T) {
	fallback := inForce{
		Mode: v1alpha1.ModeEnforce, MaxUnavailable: "1", Settle: time.Minute, MaxFailures: 2,
		DrainTimeout: 20 * time.Minute, OnTimeout: v1alpha1.DrainTimeoutAbort,
		EmptyDirData: v1alpha1.PodDisposalDelete, UnmanagedPods: v1alpha1.PodDisposalBlock, RuleAction: v1alpha1.DrainEvict,
		RebootTimeout: 30 * time.Minute, Inhibitors: v1alpha1.ObstacleBlock, Coordinators: v1alpha1.ObstacleBlock,
		WindowZone: "UTC", BlackoutZone: "UTC",
	}
	cases := map[string]struct {
		spec     v1alpha1.RebootPolicySpec
		rule     v1alpha1.DrainRule
		window   v1alpha1.Window
		blackout v1alpha1.Blackout
		want     inForce
	}{
		"nothing is set": {want: fallback},
		"sections are present but empty": {
			spec: v1alpha1.RebootPolicySpec{
				Concurrency: &v1alpha1.Concurrency{}, Drain: &v1alpha1.Drain{}, Reboot: &v1alpha1.Reboot{},
			},
			want: fallback,
		},
		"everything is set": {
			spec: v1alpha1.RebootPolicySpec{
				Mode:        v1alpha1.ModeDryRun,
				Concurrency: &v1alpha1.Concurrency{MaxUnavailable: new(intstr.FromString("25%")), TopologyKey: "zone"},
				MaxFailures: new(int32(9)),
				Drain: &v1alpha1.Drain{
					Timeout: &v1alpha1.Duration{Duration: time.Hour}, OnTimeout: v1alpha1.DrainTimeoutReboot,
					EmptyDirData: v1alpha1.PodDisposalBlock, UnmanagedPods: v1alpha1.PodDisposalDelete,
				},
				Reboot: &v1alpha1.Reboot{
					Timeout: &v1alpha1.Duration{Duration: time.Second}, Settle: &v1alpha1.Duration{}, Inhibitors: v1alpha1.ObstacleIgnore, Coordinators: v1alpha1.ObstacleIgnore,
				},
			},
			rule:     v1alpha1.DrainRule{Action: v1alpha1.DrainSkip},
			window:   v1alpha1.Window{TimeZone: "Europe/Berlin"},
			blackout: v1alpha1.Blackout{TimeZone: "Asia/Tokyo"},
			want: inForce{
				Mode: v1alpha1.ModeDryRun, MaxUnavailable: "25%", TopologyKey: "zone", Settle: 0, MaxFailures: 9,
				DrainTimeout: time.Hour, OnTimeout: v1alpha1.DrainTimeoutReboot,
				EmptyDirData: v1alpha1.PodDisposalBlock, UnmanagedPods: v1alpha1.PodDisposalDelete, RuleAction: v1alpha1.DrainSkip,
				RebootTimeout: time.Second, Inhibitors: v1alpha1.ObstacleIgnore, Coordinators: v1alpha1.ObstacleIgnore,
				WindowZone: "Europe/Berlin", BlackoutZone: "Asia/Tokyo",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			limit, drain, reboot := tc.spec.MaxUnavailableOrDefault(), tc.spec.DrainOrDefault(), tc.spec.RebootOrDefault()
			got := inForce{
				Mode: tc.spec.ModeOrDefault(), MaxUnavailable: limit.String(), TopologyKey: tc.spec.TopologyKey(),
				Settle: reboot.SettleOrDefault(), MaxFailures: tc.spec.MaxFailuresOrDefault(),
				DrainTimeout: drain.TimeoutOrDefault(), OnTimeout: drain.OnTimeoutOrDefault(),
				EmptyDirData: drain.EmptyDirDataOrDefault(), UnmanagedPods: drain.UnmanagedPodsOrDefault(),
				RuleAction:    tc.rule.ActionOrDefault(),
				RebootTimeout: reboot.TimeoutOrDefault(), Inhibitors: reboot.InhibitorsOrDefault(), Coordinators: reboot.CoordinatorsOrDefault(),
				WindowZone: tc.window.TimeZoneOrDefault(), BlackoutZone: tc.blackout.TimeZoneOrDefault(),
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}
