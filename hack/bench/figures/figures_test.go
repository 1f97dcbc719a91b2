package figures

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

func report() Result {
	return Result{
		Setting: "Two nodes.",
		Tables: []Table{
			{Columns: []string{"figure", "measured"}, Rows: []Row{
				Figure("wall time", "9.0 s"), Judged("writes", "9.1", false, "at most 9"), Judged("memory", "24 MiB", true, "below 25 MiB"),
			}},
			{Title: "Requests", Columns: []string{">requests", "verb"}, Rows: []Row{Figure("7", "get"), Figure("11", "a|b")}},
		},
		Notes: []string{"Measured elsewhere: more."},
	}
}

func TestDraw_ShowsVerdictsBesideTheGoals(t *testing.T) {
	want := []string{
		"",
		"Two nodes.",
		"Measured elsewhere: more.",
		"",
		"figure     measured     goal",
		"wall time  9.0 s",
		"writes     9.1       ✗  at most 9",
		"memory     24 MiB    ✓  below 25 MiB",
		"",
		"Requests",
		"requests  verb",
		"       7  get",
		"      11  a|b",
		"",
	}
	if diff := cmp.Diff(want, report().Draw(terminal.Theme{}, 0)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMarkdown_BeginsWithTheCommandThatMadeIt(t *testing.T) {
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
| 11 | a\|b |

Measured elsewhere: more.
`
	if diff := cmp.Diff(want, report().Markdown("make bench ARGS=--only=x")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMissed_CountsTheGoalsThatAreNotMet(t *testing.T) {
	if got := report().Missed(); got != 1 {
		t.Errorf("%d goals missed, want 1", got)
	}
}

func TestWrite_ReplacesOnlyWhatThePartHasWritten(t *testing.T) {
	const (
		begin = "<!-- x: written by make bench, which overwrites it -->\n"
		end   = "<!-- x: end -->\n"
	)
	cases := map[string]struct{ before, want, failed string }{
		"its section":      {before: "# A\n\nby hand\n\n" + begin + "old\n" + end + "\nby hand too\n", want: "# A\n\nby hand\n\n" + begin + "new\n" + end + "\nby hand too\n"},
		"no section yet":   {before: "# A\n", want: "# A\n\n" + begin + "new\n" + end},
		"of another part":  {before: strings.ReplaceAll(begin+"old\n"+end, "x:", "y:"), want: strings.ReplaceAll(begin+"old\n"+end, "x:", "y:") + "\n" + begin + "new\n" + end},
		"an end was taken": {before: begin + "old\nby hand\n", want: begin + "old\nby hand\n", failed: "has no end"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "document.md")
			if err := os.WriteFile(path, []byte(tc.before), 0o600); err != nil {
				t.Fatal(err)
			}
			err := Write(path, "x", "new\n")
			if failed := err != nil; failed != (tc.failed != "") || failed && !strings.Contains(err.Error(), tc.failed) {
				t.Errorf("error %v, want %q", err, tc.failed)
			}
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestQuantile(t *testing.T) {
	ten := []time.Duration{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}
	cases := map[string]struct {
		durations []time.Duration
		share     float64
		want      time.Duration
	}{
		"none":                      {nil, 0.5, 0},
		"one":                       {ten[:1], 0.5, 10},
		"the median of ten":         {ten, 0.5, 5},
		"the median of three":       {ten[:3], 0.5, 9},
		"95 of 100, of ten":         {ten, 0.95, 10},
		"90 of 100, of ten":         {ten, 0.9, 9},
		"the largest":               {ten, 1, 10},
		"less than one of them all": {ten, 0.01, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Quantile(tc.durations, tc.share); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}
