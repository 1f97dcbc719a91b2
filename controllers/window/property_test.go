package window_test

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// scenario is a policy and a span of time to look at it.
type scenario struct {
	windows   []v1alpha1.Window
	blackouts []v1alpha1.Blackout
	from, to  time.Time
}

func (s scenario) String() string {
	return fmt.Sprintf("windows %+v\nblackouts %+v\nfrom %v to %v", s.windows, s.blackouts, s.from, s.to)
}

// drawScenario draws mostly what is hard: spans around a clock change, and starts near the time of day of the change.
// Before 1973 there were offsets that are no whole minutes, which the oracle cannot determine.
func drawScenario(t *rapid.T) scenario {
	zone := rapid.SampledFrom(zones).Draw(t, "zone")
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatalf("loading zone: %v", err)
	}
	first, last := at("1973-01-01 00:00").Unix()/60, at("2045-01-01 00:00").Unix()/60
	middle := time.Unix(rapid.Int64Range(first, last).Draw(t, "minute")*60, 0).In(location)
	if _, end := middle.ZoneBounds(); !end.IsZero() && rapid.IntRange(0, 4).Draw(t, "atChange") > 0 {
		middle = end.Truncate(time.Minute) // some zoneinfo ends an era with the last second of 32 bits
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
		Duration:     metav1.Duration{Duration: time.Duration(minutes.Draw(t, "duration")) * time.Minute},
		Days:         drawSet(t, "days", days),
		WeeksOfMonth: drawSet(t, "weeksOfMonth", []int32{1, 2, 3, 4, 5, -1}),
		TimeZone:     drawZone(t, zone),
	}
}

// drawSet draws none of them half of the time, else any of them.
func drawSet[E comparable](t *rapid.T, label string, of []E) []E {
	return rapid.OneOf(rapid.Just[[]E](nil), rapid.SliceOfDistinct(rapid.SampledFrom(of), rapid.ID[E])).Draw(t, label)
}

func drawBlackout(t *rapid.T, name, zone string, middle time.Time) v1alpha1.Blackout {
	year, month, day := middle.Date()
	from := time.Date(year, month, day+rapid.IntRange(-10, 10).Draw(t, "from"), 0, 0, 0, 0, time.UTC)
	return v1alpha1.Blackout{
		Name:     name,
		From:     from.Format(time.DateOnly),
		To:       from.AddDate(0, 0, rapid.IntRange(1, 12).Draw(t, "length")).Format(time.DateOnly),
		TimeZone: drawZone(t, zone),
	}
}

// TestAt_MatchesOracle draws the same scenarios in each run; the fuzz test draws new ones.
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

// matchesSegments compares a state with the segment it is in, the first one, and those that follow.
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
