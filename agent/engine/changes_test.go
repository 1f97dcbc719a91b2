package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChanges_TellEachChangeOnce(t *testing.T) {
	needed, unknown := Report{State: Needed}, Report{State: Unknown}
	var got []any
	c := Changes{Report: func(r Report) { got = append(got, r) }, Reachable: func(up bool) { got = append(got, up) }}
	for _, up := range []bool{true, true, false, false} {
		c.Tell(needed, up)
	}
	c.Tell(unknown, false)
	c.Tell(unknown, false)
	if diff := cmp.Diff([]any{true, needed, false, unknown}, got); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestChanges_TellTheFirstReportEvenIfItIsZero(t *testing.T) {
	told := 0
	c := Changes{Report: func(Report) { told++ }}
	c.Tell(Report{}, false)
	c.Tell(Report{}, false)
	if told != 1 {
		t.Errorf("told %d times, want once", told)
	}
}
