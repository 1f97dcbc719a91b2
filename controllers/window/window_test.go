package window_test

import (
	stdcmp "cmp"
	"flag"
	"os"
	"slices"
	"testing"
	"time"
	_ "time/tzdata" // zones that this machine does not have

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/window"
	"github.com/reboot-operator/reboot-operator/hack/judge/oracle"
)

// TestMain makes the property tests generate the same cases in each run, unless flags change that.
// So a failure can be repeated without a file.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.seed": "1", "rapid.checks": "200", "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	flag.Parse()
	os.Exit(m.Run())
}

// Tests build windows from a name, a start, a duration and further options.

type option func(*v1alpha1.Window)

func daily(start, duration, zone string, options ...option) v1alpha1.Window {
	length, err := time.ParseDuration(duration)
	if err != nil {
		panic(err)
	}
	w := v1alpha1.Window{Name: "w", Start: start, Duration: v1alpha1.Duration{Duration: length}, TimeZone: zone}
	for _, o := range options {
		o(&w)
	}
	return w
}

func named(name string) option {
	return func(w *v1alpha1.Window) { w.Name = name }
}

func on(days ...v1alpha1.Day) option {
	return func(w *v1alpha1.Window) { w.Days = days }
}

func weeks(n ...int32) option {
	return func(w *v1alpha1.Window) { w.WeeksOfMonth = n }
}

func compile(t testing.TB, windows []v1alpha1.Window, blackouts ...v1alpha1.Blackout) window.Schedule {
	t.Helper()
	s, err := window.Compile(windows, blackouts)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return s
}

// at parses a time in UTC, such as 2006-01-02 15:04, with seconds if they matter. An empty string
// is the zero time.
func at(s string) time.Time {
	if s == "" {
		return time.Time{}
	}
	for _, layout := range []string{"2006-01-02 15:04", time.DateTime} {
		if t, err := time.Parse(layout, s); err == nil {
			return t
		}
	}
	panic("not an instant: " + s)
}

// segment is a period in which nothing changes except what is announced.
type segment = oracle.Segment

// fataler is a test of package testing or rapid.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// timeline returns the states of the schedule between two times, found by following Next.
func timeline(t fataler, s window.Schedule, from, to time.Time) []segment {
	t.Helper()
	var segments []segment
	for now := from; now.Before(to); {
		state := s.At(now)
		next := state.Next
		if !next.IsZero() && !next.After(now) {
			t.Fatalf("At(%v).Next = %v, which is not after it", now, next)
		}
		if next.IsZero() || next.After(to) {
			next = to
		}
		found := segment{From: now, To: next, Open: state.Open, Name: state.Name, Blackout: state.Blackout}
		confirm(t, s, found)
		segments = append(segments, found)
		now = next
	}
	return segments
}

// confirm checks the state again within the segment, because following Next checks it only at the
// beginning.
func confirm(t fataler, s window.Schedule, want segment) {
	t.Helper()
	quarter := want.To.Sub(want.From) / 4
	for _, now := range []time.Time{
		want.From.Add(quarter), want.From.Add(2 * quarter), want.From.Add(3 * quarter), want.To.Add(-1),
	} {
		state := s.At(now)
		got := segment{From: want.From, To: want.To, Open: state.Open, Name: state.Name, Blackout: state.Blackout}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("within the segment, at %v (-want +got):\n%s", now, diff)
		}
	}
}

// openingsCase is a row of the tables of openings: those of the window between two times. All times
// are in UTC.
type openingsCase struct {
	window   v1alpha1.Window
	from, to string
	want     []open
}

// open is an opening in a table. Its name defaults to "w".
type open struct{ from, to, name string }

// inSeconds reports whether it has seconds, which the oracle does not support.
func (o open) inSeconds() bool { return len(o.from)+len(o.to) > 2*len("2006-01-02 15:04") }

func testOpenings(t *testing.T, cases map[string]openingsCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			windows := []v1alpha1.Window{tc.window}
			found := map[string][]segment{"manager": timeline(t, compile(t, windows), at(tc.from), at(tc.to))}
			if !slices.ContainsFunc(tc.want, open.inSeconds) {
				found["oracle"] = oracle.Segments(windows, nil, at(tc.from), at(tc.to))
			}
			for who, got := range found {
				got = slices.DeleteFunc(got, func(s segment) bool { return !s.Open })
				if diff := cmp.Diff(segments(tc.want), got, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("openings of the %s (-want +got):\n%s", who, diff)
				}
			}
		})
	}
}

func segments(opens []open) []segment {
	var want []segment
	for _, o := range opens {
		want = append(want, segment{From: at(o.from), To: at(o.to), Open: true, Name: stdcmp.Or(o.name, "w")})
	}
	return want
}
