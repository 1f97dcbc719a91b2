package scale

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// at returns times, in milliseconds after a start.
func at(milliseconds ...int) []time.Time {
	var instants []time.Time
	for _, ms := range milliseconds {
		instants = append(instants, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(ms)*time.Millisecond))
	}
	return instants
}

func TestHandovers(t *testing.T) {
	cases := map[string]struct {
		freed, granted []time.Time
		slots          int
		want           []time.Duration
	}{
		"one after the other":               {at(100, 300), at(0, 110, 320), 1, []time.Duration{10 * time.Millisecond, 20 * time.Millisecond}},
		"two slots: the first two are free": {at(100, 101), at(0, 1, 150, 160), 2, []time.Duration{50 * time.Millisecond, 59 * time.Millisecond}},
		"seen in another order":             {at(101, 100), at(1, 160, 0, 150), 2, []time.Duration{50 * time.Millisecond, 59 * time.Millisecond}},
		"the last ones stay free":           {at(100, 200, 300), at(0, 110), 1, []time.Duration{10 * time.Millisecond}},
		"fewer than there are slots":        {at(100), at(0), 3, nil},
		"nothing":                           {nil, nil, 1, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, handovers(tc.freed, tc.granted, tc.slots)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
