package scale

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
)

// good returns a result that only just meets every goal.
func good(nodes int) size {
	return size{
		nodes: nodes, rest: 30 * time.Second, reboots: 300,
		rested:   process.Memory{Resident: goalMemory[nodes] - 1},
		handover: []time.Duration{goalHandover - 1, goalHandover - 1, time.Hour},
		atRest:   fleet.Asked{Watches: 1, Leases: 2},
	}
}

func TestReport_NamesGoalsThatAreMissed(t *testing.T) {
	cases := map[string]struct {
		miss func(*size)
		want []string
	}{
		"all are met":             {func(*size) {}, nil},
		"no goal for this size":   {func(s *size) { s.nodes, s.rested.Resident = 1000, 1<<40 }, nil},
		"too large":               {func(s *size) { s.rested.Resident++ }, []string{"memory (RSS)"}},
		"a LIST":                  {func(s *size) { s.atRest.Reads = []fleet.Line{{Verb: "list", Count: 1}} }, []string{"LISTs in a minute", "requests in a minute, without watches and the Lease"}},
		"a write":                 {func(s *size) { s.atRest.Writes = []fleet.Line{{Verb: "update", Count: 1}} }, []string{"requests in a minute, without watches and the Lease"}},
		"too slow":                {func(s *size) { s.handover[1]++ }, []string{"hand-over, median"}},
		"no slot was handed over": {func(s *size) { s.handover = nil }, []string{"hand-over, median"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, nodes := range []int{5000, 15000} {
				s := good(nodes)
				tc.miss(&s)
				if diff := cmp.Diff(tc.want, report(&options{}, []size{good(5000), s}).Missed()); diff != "" {
					t.Errorf("%d nodes (-want +got):\n%s", nodes, diff)
				}
			}
		})
	}
}
