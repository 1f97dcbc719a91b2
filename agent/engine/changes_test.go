package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestChanges(t *testing.T) {
	type input struct {
		report   Report
		presence Presence
		why      string
	}
	needed, idle := Report{Engine: "e", State: Needed}, Report{Engine: "e", State: NotNeeded}
	unknown, absent := Report{Engine: "e", State: Unknown, Message: "Gone."}, Report{Engine: "e", State: Absent, Message: "Gone."}
	unknown.Reason = v1alpha1.ReasonEngineUnreachable
	absent.Reason = unknown.Reason
	missing, silent, unclear := input{unknown, Missing, ""}, input{unknown, Silent, ""}, input{unknown, Unclear, ""}
	answers := func(r Report) input { return input{r, Answering, ""} }
	gone := func(r Report) input { return input{r, Missing, "Gone."} }
	cases := map[string]struct {
		optional, seen bool
		inputs         []input
		want           []any
	}{
		"each change is reported once (behaviour 4)": {
			inputs: []input{answers(needed), answers(needed), {needed, Silent, ""}, {needed, Missing, ""}, missing, missing},
			want:   []any{true, needed, false, unknown},
		},
		"the first report is reported even if it is zero": {inputs: []input{{}, {}}, want: []any{false, Report{}}},
		"a named engine that is missing is unknown": {
			inputs: []input{unclear, missing, answers(idle)}, want: []any{false, unknown, true, idle},
		},
		"an engine that was not named is absent until it appears": {
			optional: true, inputs: []input{missing, answers(idle), missing}, want: []any{absent, true, idle, false, unknown},
		},
		"an engine that is there but does not respond is not absent": {
			optional: true, inputs: []input{silent, missing}, want: []any{false, unknown},
		},
		"an engine that cannot be looked for is unknown, and not yet an engine of this host": {
			optional: true, inputs: []input{unclear, missing}, want: []any{unknown, absent},
		},
		"an engine that was there earlier in this boot is not absent": {
			optional: true, seen: true, inputs: []input{missing}, want: []any{false, unknown},
		},
		"a need counts, whatever engine reported it": {
			optional: true, inputs: []input{missing, {needed, Missing, ""}, missing}, want: []any{absent, needed, absent},
		},
		"an engine that is gone is unknown, and up to date once it is back (behaviour 7)": {
			inputs: []input{answers(idle), gone(idle), answers(idle)}, want: []any{true, idle, false, unknown, true, idle},
		},
		"a need outlives the engine (behaviour 6)":             {inputs: []input{answers(needed), gone(needed)}, want: []any{true, needed, false}},
		"a need that ends while the engine is gone is unknown": {inputs: []input{gone(needed), gone(idle)}, want: []any{false, needed, unknown}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []any
			c := Changes{
				Optional: tc.optional, Seen: tc.seen,
				Report: func(r Report) { got = append(got, r) }, Reachable: func(up bool) { got = append(got, up) },
			}
			for _, s := range tc.inputs {
				c.Reach(s.presence, s.why)
				c.Update(s.report)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reported (-want +got):\n%s", diff)
			}
		})
	}
}

// A broadcast may be received before the engine was queried.
func TestChanges_NothingIsPassedOnBeforeReach(t *testing.T) {
	var got []Report
	c := Changes{Report: func(r Report) { got = append(got, r) }}
	c.Update(Report{Engine: "e", State: NotNeeded})
	if len(got) > 0 {
		t.Errorf("passed on %+v", got)
	}
}
