package window_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// TestAt_KeepsItsPromises compares At with itself, over centuries and with durations of any length: what a state reports
// of an instant ahead is what the state at that instant reports, and nothing changes before.
func TestAt_KeepsItsPromises(t *testing.T) { rapid.Check(t, keepsPromises) }

func FuzzKeepsPromises(f *testing.F) {
	seed(f)
	f.Fuzz(rapid.MakeFuzz(keepsPromises))
}

// seed gives rapid enough to draw whole policies from; with less it ends before anything is checked.
func seed(f *testing.F) {
	f.Helper()
	source := rand.New(rand.NewPCG(1, 2))
	for range 8 {
		drawn := make([]byte, 4096)
		for i := range drawn {
			drawn[i] = byte(source.Uint32())
		}
		f.Add(drawn)
	}
}

func keepsPromises(t *rapid.T) {
	windows, blackouts, now := drawPolicy(t)
	s, err := window.Compile(windows, blackouts)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	for range 20 {
		state := s.At(now)
		if promise := broken(s, now, state); promise != "" {
			t.Fatalf("%s\nAt(%v) = %+v\nwindows %+v\nblackouts %+v", promise, now, state, windows, blackouts)
		}
		if state.Next.IsZero() {
			return
		}
		now = state.Next
	}
}

// broken is the promise that the state breaks, if any.
func broken(s window.Schedule, now time.Time, state window.State) string {
	beyond := now.Add(400 * 24 * time.Hour)
	switch {
	case state.Open && !state.OpensAt.IsZero(), !state.Open && !state.ClosesAt.IsZero():
		return "an instant is reported that has passed"
	case state.Open && state.Blackout, state.Blackout && state.Name == "", state.Always && !state.Open && !state.Blackout:
		return "the parts contradict each other"
	case state.OpensAt.After(beyond), state.ClosesAt.After(beyond):
		return "an instant is reported that is more than 400 days ahead"
	}
	for name, turn := range map[string]time.Time{"OpensAt": state.OpensAt, "ClosesAt": state.ClosesAt} {
		if turn.IsZero() {
			continue
		}
		if !turn.After(now) || s.At(turn.Add(-1)).Open != state.Open || s.At(turn).Open == state.Open {
			return name + " is not when it turns"
		}
		if state.Next.IsZero() || state.Next.After(turn) {
			return "Next is after " + name
		}
	}
	return brokenNext(s, now, state)
}

// brokenNext is what is wrong with Next, if anything.
func brokenNext(s window.Schedule, now time.Time, state window.State) string {
	if state.Next.IsZero() {
		return changed(state, s.At(now.Add(100*24*time.Hour)))
	}
	if !state.Next.After(now) {
		return "Next is not after now"
	}
	if diff := changed(state, s.At(state.Next.Add(-1))); diff != "" {
		return "something changes before Next:\n" + diff
	}
	next := s.At(state.Next)
	next.Next = state.Next
	if next == state {
		return "nothing changes at Next"
	}
	return ""
}

// changed is what is different later, when nothing has happened meanwhile. Windows that are open on and on for more than
// 400 days are not followed to their end, so the end may come in sight.
func changed(state, later window.State) string {
	if state.Open && state.ClosesAt.IsZero() {
		later.ClosesAt, later.Next = state.ClosesAt, state.Next
	}
	return cmp.Diff(state, later)
}

// drawPolicy draws windows and blackouts of any kind, and an instant.
func drawPolicy(t *rapid.T) ([]v1alpha1.Window, []v1alpha1.Blackout, time.Time) {
	seconds := rapid.Int64Range(at("1800-01-01 00:00").Unix(), at("2500-01-01 00:00").Unix())
	now := time.Unix(seconds.Draw(t, "now"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC()
	var windows []v1alpha1.Window
	for i := range rapid.IntRange(0, 4).Draw(t, "windows") {
		w := drawWindow(t, fmt.Sprintf("w%d", i), rapid.SampledFrom(zones).Draw(t, "zone"), now)
		if rapid.Bool().Draw(t, "odd") {
			odd := rapid.Int64Range(1, int64(168*time.Hour/time.Millisecond)).Draw(t, "milliseconds")
			w.Duration = metav1.Duration{Duration: time.Duration(odd) * time.Millisecond}
		}
		windows = append(windows, w)
	}
	var blackouts []v1alpha1.Blackout
	for i := range rapid.IntRange(0, 4).Draw(t, "blackouts") {
		b := drawBlackout(t, fmt.Sprintf("b%d", i), rapid.SampledFrom(zones).Draw(t, "zone"), now)
		if rapid.Bool().Draw(t, "far") {
			b.To = now.AddDate(0, 0, rapid.IntRange(20, 5000).Draw(t, "to")).Format(time.DateOnly)
		}
		blackouts = append(blackouts, b)
	}
	return windows, blackouts, now
}
