package drains

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReport_AsksForMoreWhereABudgetBinds(t *testing.T) {
	second := func(n float64) measured { return measured{took: time.Duration(n * float64(time.Second))} }
	cases := map[string]struct {
		pair   pair
		cells  []string
		missed bool
	}{
		"as fast":                    {pair{30, false, second(4), second(4)}, []string{"30", "no", "4.0 s", "4.0 s", "1.0"}, false},
		"slower":                     {pair{30, false, second(4), second(3.9)}, []string{"30", "no", "4.0 s", "3.9 s", "1.0"}, true},
		"three times as fast":        {pair{110, true, second(10), second(30)}, []string{"110", "tight", "10.0 s", "30.0 s", "3.0"}, false},
		"not quite":                  {pair{110, true, second(10), second(29)}, []string{"110", "tight", "10.0 s", "29.0 s", "2.9"}, true},
		"kubectl was not waited for": {pair{250, true, second(10), measured{took: 50 * time.Second, ended: true}}, []string{"250", "tight", "10.0 s", "> 50.0 s", "> 5.0"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			row := report([]pair{tc.pair}).Tables[0].Rows[0]
			if diff := cmp.Diff(tc.cells, row.Cells); diff != "" || row.Missed != tc.missed {
				t.Errorf("missed: %v, want %v (-want +got):\n%s", row.Missed, tc.missed, diff)
			}
		})
	}
}

func TestReport_ShowsWhatBothAsked(t *testing.T) {
	p := pair{pods: 30, tight: true}
	p.operator.asked = asked{lists: 1, watches: 2, gets: 3, evictions: 4, refused: 5, others: 6}
	p.kubectl.asked = asked{gets: 7}
	want := [][]string{
		{"30", "tight", "operator", "1", "2", "3", "4", "5", "6", "21"},
		{"30", "tight", "kubectl", "0", "0", "7", "0", "0", "0", "7"},
	}
	var got [][]string
	for _, row := range report([]pair{p}).Tables[1].Rows {
		got = append(got, row.Cells)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
