package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChanges(t *testing.T) {
	type input struct {
		report   Report
		presence Presence
	}
	needed, idle := Report{Engine: "e", State: Needed}, Report{Engine: "e", State: NotNeeded}
	unknown, absent := Report{Engine: "e", State: Unknown, Message: "Gone."}, Report{Engine: "e", State: Absent, Message: "Gone."}
	missing, silent, unclear := input{unknown, Missing}, input{unknown, Silent}, input{unknown, Unclear}
	cases := map[string]struct {
		optional, seen bool
		inputs         []input
		want           []any
	}{
		"each change is reported once (behaviour 4)": {
			inputs: []input{{needed, Answering}, {needed, Answering}, {needed, Silent}, {needed, Missing}, missing, missing},
			want:   []any{true, needed, false, unknown},
		},
		"the first report is reported even if it is zero": {inputs: []input{{}, {}}, want: []any{false, Report{}}},
		"an engine that is named and missing is unknown": {
			inputs: []input{unclear, missing, {idle, Answering}}, want: []any{false, unknown, true, idle},
		},
		"one that nobody named is absent until it comes": {
			optional: true, inputs: []input{missing, {idle, Answering}, missing}, want: []any{absent, true, idle, false, unknown},
		},
		"one that is there and cannot be asked is not absent": {
			optional: true, inputs: []input{silent, missing}, want: []any{false, unknown},
		},
		"one that nobody can look for is unknown, and no engine of this host yet": {
			optional: true, inputs: []input{unclear, missing}, want: []any{unknown, absent},
		},
		"one that was there earlier in this boot is not absent": {
			optional: true, seen: true, inputs: []input{missing}, want: []any{false, unknown},
		},
		"a need is a need, whoever reported it": {
			optional: true, inputs: []input{missing, {needed, Missing}, missing}, want: []any{absent, needed, absent},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []any
			c := Changes{
				Optional: tc.optional, Seen: tc.seen,
				Report: func(r Report) { got = append(got, r) }, Reachable: func(up bool) { got = append(got, up) },
			}
			for _, s := range tc.inputs {
				c.Update(s.report, s.presence)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}
