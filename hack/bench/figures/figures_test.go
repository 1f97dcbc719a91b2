package figures

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMarkdown_BeginsWithTheCommandThatMadeItAndShowsMissedGoals(t *testing.T) {
	r := Result{
		Setting: "Two nodes.",
		Tables: []Table{
			{Columns: []string{"figure", "measured"}, Rows: []Row{
				Figure("wall time", "9.0 s"), Judged("writes", "9.1", false, "at most 9"), Judged("memory", "24 MiB", true, "below 25 MiB"),
			}},
			{Title: "Requests", Columns: []string{">requests", "verb"}, Rows: []Row{Figure("7", "get")}},
		},
		Notes: []string{"Measured elsewhere: more."},
	}
	want := "`make bench ARGS=--only=x`: Two nodes.\n" + `
| figure | measured | goal | met |
|---|---|---|---|
| wall time | 9.0 s |  |  |
| writes | 9.1 | at most 9 | ✗ |
| memory | 24 MiB | below 25 MiB | ✓ |

Requests:

| requests | verb |
|---:|---|
| 7 | get |

Measured elsewhere: more.
`
	if diff := cmp.Diff(want, r.Markdown("make bench ARGS=--only=x")); diff != "" || !slices.Equal(r.Missed(), []string{"writes"}) {
		t.Errorf("%q missed, want the writes alone (-want +got):\n%s", r.Missed(), diff)
	}
}

func TestQuantile(t *testing.T) {
	ten := []time.Duration{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
	for share, want := range map[float64]time.Duration{0.01: 1, 0.5: 5, 0.9: 9, 0.95: 10, 1: 10} {
		if got := Quantile(ten, share); got != want {
			t.Errorf("%g of ten: %d, want %d", share, got, want)
		}
	}
	if got := Quantile(nil, 0.5); got != 0 {
		t.Errorf("%d of none", got)
	}
}
