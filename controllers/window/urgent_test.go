package window_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// urgent is the schedule of a spec that is urgent until an instant.
func urgent(t testing.TB, until string, windows []v1alpha1.Window, blackouts []v1alpha1.Blackout, ignore ...v1alpha1.UrgentIgnore) window.Schedule {
	t.Helper()
	s, err := window.Of(&v1alpha1.RebootPolicySpec{Windows: windows, Blackouts: blackouts, Urgent: &v1alpha1.Urgent{
		Until: metav1.NewTime(at(until)), Reason: "CVE", Ignore: ignore,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAt_Urgent: what is ignored does not count until then, and all counts again afterwards.
func TestAt_Urgent(t *testing.T) {
	nightly := []v1alpha1.Window{daily("22:00", "4h", "UTC")}
	freeze := []v1alpha1.Blackout{blackout("freeze", "2026-06-02", "2026-06-04", "UTC")}
	const windows, blackouts = v1alpha1.UrgentIgnoresWindows, v1alpha1.UrgentIgnoresBlackouts
	cases := map[string]struct {
		schedule window.Schedule
		now      string
		want     window.State
	}{
		"opens at once, until then": {
			urgent(t, "2026-06-01 18:00", nightly, nil, windows), "2026-06-01 12:00",
			window.State{Open: true, Urgent: true, Name: "urgent", ClosesAt: at("2026-06-01 18:00"), Next: at("2026-06-01 18:00")},
		},
		"is over then": {
			urgent(t, "2026-06-01 18:00", nightly, nil, windows), "2026-06-01 18:00",
			window.State{OpensAt: at("2026-06-01 22:00"), Next: at("2026-06-01 22:00")},
		},
		"goes on in the window that is open then": {
			urgent(t, "2026-06-01 23:00", nightly, nil, windows), "2026-06-01 12:00",
			window.State{Open: true, Urgent: true, Name: "urgent", ClosesAt: at("2026-06-02 02:00"), Next: at("2026-06-01 23:00")},
		},
		"keeps blackouts that it does not ignore": {
			urgent(t, "2026-06-05 12:00", nightly, freeze, windows), "2026-06-02 12:00",
			window.State{Name: "freeze", Blackout: true, BlackoutReason: "because of freeze", OpensAt: at("2026-06-04 00:00"), Next: at("2026-06-04 00:00")},
		},
		"keeps windows that it does not ignore": {
			urgent(t, "2026-06-03 12:00", nightly, freeze, blackouts), "2026-06-02 12:00",
			window.State{OpensAt: at("2026-06-02 22:00"), Next: at("2026-06-02 22:00")},
		},
		"a blackout that it ignores does not close, before it is over": {
			urgent(t, "2026-06-03 00:00", nightly, freeze, blackouts), "2026-06-02 23:00",
			window.State{Open: true, Urgent: true, Name: "w", ClosesAt: at("2026-06-03 00:00"), Next: at("2026-06-03 00:00")},
		},
		"the next opening is after the blackout that counts again": {
			urgent(t, "2026-06-02 12:00", nightly, freeze, blackouts), "2026-06-02 11:00",
			window.State{OpensAt: at("2026-06-04 00:00"), Next: at("2026-06-02 12:00")},
		},
		"a pause alone changes no hour": {
			urgent(t, "2026-06-01 18:00", nightly, nil, v1alpha1.UrgentIgnoresPause), "2026-06-01 12:00",
			window.State{OpensAt: at("2026-06-01 22:00"), Next: at("2026-06-01 18:00")},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.schedule.At(at(tc.now))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// noChange is the one promise that need not hold: the end of spec.urgent is looked at, also where it changes no hour.
const noChange = "nothing changes at Next"

// TestAt_UrgentKeepsItsPromises: as TestAt_KeepsItsPromises, and it is open where what is ignored allows it, and only there.
func TestAt_UrgentKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		windows, blackouts, now := drawPolicy(t)
		ignore := rapid.SampledFrom([][]v1alpha1.UrgentIgnore{
			{v1alpha1.UrgentIgnoresWindows}, {v1alpha1.UrgentIgnoresBlackouts}, {v1alpha1.UrgentIgnoresWindows, v1alpha1.UrgentIgnoresBlackouts},
		}).Draw(t, "ignore")
		until := now.Add(time.Duration(rapid.Int64Range(-int64(time.Hour), int64(30*24*time.Hour)).Draw(t, "until")))
		s, err := window.Of(&v1alpha1.RebootPolicySpec{
			Windows: windows, Blackouts: blackouts, Urgent: &v1alpha1.Urgent{Until: metav1.NewTime(until), Ignore: ignore},
		})
		if err != nil {
			t.Fatal(err)
		}
		allowed, otherwise := windows, blackouts
		for _, what := range ignore {
			if what == v1alpha1.UrgentIgnoresWindows {
				allowed = nil
			} else {
				otherwise = nil
			}
		}
		before, err := window.Compile(allowed, otherwise)
		if err != nil {
			t.Fatal(err)
		}
		after, err := window.Compile(windows, blackouts)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			state, judge := s.At(now), after
			if now.Before(until) {
				judge = before
			}
			if state.Open != judge.At(now).Open || state.Urgent != (state.Open && now.Before(until)) {
				t.Fatalf("At(%v) = %+v, urgent until %v without %v", now, state, until, ignore)
			}
			if promise := broken(s, now, state); promise != "" && (promise != noChange || !now.Before(until)) {
				t.Fatalf("%s\nAt(%v) = %+v, urgent until %v without %v\nwindows %+v\nblackouts %+v", promise, now, state, until, ignore, windows, blackouts)
			}
			if state.Next.IsZero() {
				return
			}
			now = state.Next
		}
	})
}
