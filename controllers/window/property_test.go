package window_test

import (
	_ "embed"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/hack/judge/oracle"
)

// zoneNames is every name of the IANA database.
//
//go:embed testdata/zones.txt
var zoneNames string

var zones = strings.Fields(zoneNames)

// scenario is a policy and a period in which to check it.
type scenario struct {
	windows   []v1alpha1.Window
	blackouts []v1alpha1.Blackout
	from, to  time.Time
}

func (s scenario) String() string {
	return fmt.Sprintf("windows %+v\nblackouts %+v\nfrom %v to %v", s.windows, s.blackouts, s.from, s.to)
}

// drawScenario generates mostly difficult cases: periods around a clock change, and starts near its
// time of day. Before 1973 some offsets were not whole minutes, which the oracle cannot determine.
func drawScenario(t *rapid.T) scenario {
	zone := rapid.SampledFrom(zones).Draw(t, "zone")
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatalf("loading zone: %v", err)
	}
	first, last := at("1973-01-01 00:00").Unix()/60, at("2045-01-01 00:00").Unix()/60
	middle := time.Unix(rapid.Int64Range(first, last).Draw(t, "minute")*60, 0).In(location)
	if _, end := middle.ZoneBounds(); !end.IsZero() && rapid.IntRange(0, 4).Draw(t, "atChange") > 0 {
		middle = end.Truncate(time.Minute) // some zoneinfo ends an era at the last second that fits 32 bits
	}
	s := scenario{
		from: middle.Add(-time.Duration(rapid.IntRange(0, 10*24*60).Draw(t, "before")) * time.Minute).UTC(),
		to:   middle.Add(time.Duration(rapid.IntRange(1, 10*24*60).Draw(t, "after")) * time.Minute).UTC(),
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "windows") {
		s.windows = append(s.windows, drawWindow(t, fmt.Sprintf("w%d", i), zone, middle))
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "blackouts") {
		s.blackouts = append(s.blackouts, drawBlackout(t, fmt.Sprintf("b%d", i), zone, middle))
	}
	return s
}

func drawZone(t *rapid.T, usual string) string {
	return rapid.OneOf(rapid.Just(usual), rapid.Just(usual), rapid.SampledFrom(zones)).Draw(t, "zone")
}

func drawWindow(t *rapid.T, name, zone string, middle time.Time) v1alpha1.Window {
	start := middle.Add(-time.Minute).Add(time.Duration(rapid.OneOf(
		rapid.IntRange(-10, 10), rapid.IntRange(-150, 150), rapid.IntRange(0, 24*60)).Draw(t, "start")) * time.Minute)
	minutes := rapid.OneOf(
		rapid.IntRange(1, 180), rapid.IntRange(1, 168*60), rapid.SampledFrom([]int{23 * 60, 24 * 60, 25 * 60, 48 * 60, 168 * 60}))
	days := []v1alpha1.Day{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
	return v1alpha1.Window{
		Name:         name,
		Start:        start.Format("15:04"),
		Duration:     v1alpha1.Duration{Duration: time.Duration(minutes.Draw(t, "duration")) * time.Minute},
		Days:         drawSet(t, "days", days),
		WeeksOfMonth: drawSet(t, "weeksOfMonth", []int32{1, 2, 3, 4, 5, -1}),
		TimeZone:     drawZone(t, zone),
	}
}

// drawSet generates an empty set half of the time, and otherwise any subset.
func drawSet[E comparable](t *rapid.T, label string, of []E) []E {
	return rapid.OneOf(rapid.Just[[]E](nil), rapid.SliceOfDistinct(rapid.SampledFrom(of), rapid.ID[E])).Draw(t, label)
}

func drawBlackout(t *rapid.T, name, zone string, middle time.Time) v1alpha1.Blackout {
	year, month, day := middle.Date()
	from := time.Date(year, month, day+rapid.IntRange(-10, 10).Draw(t, "from"), 0, 0, 0, 0, time.UTC)
	layout := rapid.SampledFrom([]string{time.DateOnly, "01-02"}).Draw(t, "layout")
	return v1alpha1.Blackout{
		Name:     name,
		From:     from.Format(layout),
		To:       from.AddDate(0, 0, rapid.IntRange(1, 12).Draw(t, "length")).Format(layout),
		TimeZone: drawZone(t, zone),
	}
}

// TestAt_MatchesOracle generates the same scenarios in each run. The fuzz test generates new ones.
func TestAt_MatchesOracle(t *testing.T) { rapid.Check(t, matchesOracle) }

func FuzzMatchesOracle(f *testing.F) {
	seed(f)
	f.Fuzz(rapid.MakeFuzz(matchesOracle))
}

func matchesOracle(t *rapid.T) {
	sc := drawScenario(t)
	s, err := window.Compile(sc.windows, sc.blackouts)
	if err != nil {
		t.Fatalf("Compile: %v\n%v", err, sc)
	}
	want := oracle.Segments(sc.windows, sc.blackouts, sc.from, sc.to)
	if diff := cmp.Diff(want, timeline(t, s, sc.from, sc.to)); diff != "" {
		t.Fatalf("segments (-oracle +got):\n%s\n%v", diff, sc)
	}
	for i := range want {
		now := want[i].From.Add(time.Duration(rapid.Int64Range(0, int64(want[i].To.Sub(want[i].From))-1).Draw(t, "now")))
		matchesSegments(t, s.At(now), now, want[i:])
	}
}

// matchesSegments compares a state with its segment, which is the first one, and with those that
// follow.
func matchesSegments(t *rapid.T, got window.State, now time.Time, segments []segment) {
	current := segments[0]
	if got.Open != current.Open || got.Name != current.Name || got.Blackout != current.Blackout {
		t.Fatalf("At(%v) = %+v in segment %+v", now, got, current)
	}
	end := segments[len(segments)-1].To
	turns := time.Time{}
	for _, s := range segments {
		if s.Open != current.Open {
			turns = s.From
			break
		}
	}
	reported, other := got.OpensAt, got.ClosesAt
	if current.Open {
		reported, other = other, reported
	}
	switch {
	case !other.IsZero():
		t.Fatalf("At(%v) = %+v, which reports both or the wrong one", now, got)
	case turns.IsZero() && !reported.IsZero() && reported.Before(end):
		t.Fatalf("At(%v) = %+v, but nothing opens or closes before %v", now, got, end)
	case !turns.IsZero() && !reported.Equal(turns):
		t.Fatalf("At(%v) = %+v, but it turns at %v", now, got, turns)
	}
}

// TestAt_KeepsItsPromises compares At with itself, over centuries and with durations of any length.
// The state at a later instant must be as announced, and must not change before.
func TestAt_KeepsItsPromises(t *testing.T) { rapid.Check(t, keepsPromises) }

func FuzzKeepsPromises(f *testing.F) {
	seed(f)
	f.Fuzz(rapid.MakeFuzz(keepsPromises))
}

// seed provides enough data for rapid to generate whole policies. With less it ends before anything
// is checked.
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

// broken describes the announcement that turns out wrong, or is empty.
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

// brokenNext describes what is wrong with Next, or is empty.
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

// changed describes the difference between two states if nothing should have changed in between.
// Windows that stay open for more than 400 days are not followed to their end, so the end may come
// within the horizon.
func changed(state, later window.State) string {
	if state.Open && state.ClosesAt.IsZero() {
		later.ClosesAt, later.Next = state.ClosesAt, state.Next
	}
	return cmp.Diff(state, later)
}

// drawPolicy generates windows and blackouts of any kind, and an instant.
func drawPolicy(t *rapid.T) ([]v1alpha1.Window, []v1alpha1.Blackout, time.Time) {
	seconds := rapid.Int64Range(at("1800-01-01 00:00").Unix(), at("2500-01-01 00:00").Unix())
	now := time.Unix(seconds.Draw(t, "now"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC()
	var windows []v1alpha1.Window
	for i := range rapid.IntRange(0, 4).Draw(t, "windows") {
		w := drawWindow(t, fmt.Sprintf("w%d", i), rapid.SampledFrom(zones).Draw(t, "zone"), now)
		if rapid.Bool().Draw(t, "odd") {
			odd := rapid.Int64Range(1, int64(168*time.Hour/time.Millisecond)).Draw(t, "milliseconds")
			w.Duration = v1alpha1.Duration{Duration: time.Duration(odd) * time.Millisecond}
		}
		windows = append(windows, w)
	}
	var blackouts []v1alpha1.Blackout
	for i := range rapid.IntRange(0, 4).Draw(t, "blackouts") {
		b := drawBlackout(t, fmt.Sprintf("b%d", i), rapid.SampledFrom(zones).Draw(t, "zone"), now)
		if rapid.Bool().Draw(t, "far") {
			b.From = now.AddDate(0, 0, rapid.IntRange(-400, 10).Draw(t, "from")).Format(time.DateOnly)
			b.To = now.AddDate(0, 0, rapid.IntRange(20, 5000).Draw(t, "to")).Format(time.DateOnly)
		}
		blackouts = append(blackouts, b)
	}
	return windows, blackouts, now
}
