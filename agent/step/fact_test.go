package step

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAsks(t *testing.T) {
	cases := map[string]struct {
		o                         Observation
		ledger, policy, inhibitor bool
	}{
		"at rest":                                 {makeObservation(), false, false, false},
		"a need":                                  {makeObservation(staged("1")), false, false, true},
		"a need that nobody has reported yet":     {makeObservation(silent, requesting("x")), false, false, false},
		"a request":                               {makeObservation(requesting("x")), false, false, true},
		"a long uptime":                           {makeObservation(up(24*time.Hour, 24*time.Hour)), false, false, true},
		"a grant":                                 {makeObservation(staged("1"), granted(1, active)), true, false, true},
		"a grant on a paused node":                {makeObservation(granted(1, active), paused), false, false, false},
		"a drain":                                 {makeObservation(staged("1"), beingDrained), false, true, false},
		"a drain that is done":                    {makeObservation(beingDrained, drainIs(Drain{State: DrainDone})), false, true, true},
		"a drain that lasts too long":             {makeObservation(beingDrained, func(o *Observation) { o.Now = begun.Add(time.Hour) }), false, true, true},
		"a call":                                  {makeObservation(staged("1"), goingDown), true, false, false},
		"a call without a grant":                  {makeObservation(goingDown, func(o *Observation) { o.Record.Grant = nil }), false, false, false},
		"a reboot that the manager has ended":     {makeObservation(goingDown, granted(1, finished)), false, false, false},
		"a call that is not due":                  {makeObservation(goingDown, func(o *Observation) { o.Call.AcceptedAt = now }), false, false, false},
		"a record that cannot be read":            {makeObservation(granted(1, active), unreadableProgress), false, false, false},
		"after the boot":                          {makeObservation(rebootedBefore), false, false, false},
		"another grant in a drain":                {makeObservation(beingDrained, granted(2, active)), false, false, false},
		"a drain that has begun":                  {makeObservation(beingDrained, readLast(time.Second)), false, false, false},
		"a drain that should have begun long ago": {makeObservation(beingDrained, readLast(policyLasts)), false, true, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := needsLedger(tc.o); got != tc.ledger {
				t.Errorf("needsLedger = %v, want %v", got, tc.ledger)
			}
			if got := needsPolicy(tc.o); got != tc.policy {
				t.Errorf("needsPolicy = %v, want %v", got, tc.policy)
			}
			if got := needsHost(tc.o); got != tc.inhibitor {
				t.Errorf("needsHost = %v, want %v", got, tc.inhibitor)
			}
		})
	}
}

func TestAsksVolumes(t *testing.T) {
	done := func(o *Observation) { hasDrained(o); using("x")(o) }
	cases[bool]{
		"the drain is done":                          {makeObservation(done), true},
		"while nothing is in use":                    {makeObservation(hasDrained), false},
		"while the drain runs":                       {makeObservation(done, drainIs(Drain{State: DrainRunning})), false},
		"while the policy does not wait for volumes": {makeObservation(done, waiting(0)), false},
	}.each(t, needsVolumes)
}

// Each fact is looked up once, in order, and only if the earlier facts leave the decision open.
func TestNextAsk_AsksWhatTheDecisionDependsOn(t *testing.T) {
	unread := func(o *Observation) { o.Policy, o.StartLook, o.Confirmed = nil, Look{}, false }
	toBegin := []func(*Observation){staged("1"), granted(1, active), unread}
	for name, tc := range map[string]struct {
		o       Observation
		answers map[Fact]func(*Observation)
		want    []Fact
	}{
		"at rest":       {makeObservation(), nil, []Fact{FactCoordinators}},
		"a need":        {makeObservation(staged("1")), nil, []Fact{FactInhibitors, FactCoordinators}},
		"a long uptime": {makeObservation(up(24*time.Hour, 24*time.Hour)), nil, []Fact{FactInhibitors, FactCoordinators}},
		"a grant": {makeObservation(toBegin...), map[Fact]func(*Observation){
			FactLedger: func(o *Observation) { o.Policy = &Settings{} },
		}, []Fact{FactLedger, FactPods, FactEngines, FactInhibitors, FactCoordinators}},
		"a grant right after the boot": {makeObservation(append(toBegin, up(time.Minute, 0))...), map[Fact]func(*Observation){
			FactLedger: func(o *Observation) { o.Policy = &Settings{} },
		}, []Fact{FactLedger, FactInhibitors, FactCoordinators}},
		"a policy that cannot be read": {makeObservation(toBegin...), nil, []Fact{FactLedger, FactInhibitors, FactCoordinators}},
		"a pod in the way": {makeObservation(toBegin...), map[Fact]func(*Observation){
			FactLedger: func(o *Observation) { o.Policy = &Settings{} },
			FactPods:   func(o *Observation) { o.StartLook = Look{At: now, Blocking: namedPod("x")} },
		}, []Fact{FactLedger, FactPods, FactInhibitors, FactCoordinators}},
		"a need that the engines withdraw": {makeObservation(toBegin...), map[Fact]func(*Observation){
			FactLedger:  func(o *Observation) { o.Policy = &Settings{} },
			FactEngines: silent,
		}, []Fact{FactLedger, FactPods, FactEngines}},
		"a drain that runs": {makeObservation(beingDrained, drainIs(Drain{State: DrainRunning})), nil, nil},
		"a drain past its deadline": {
			makeObservation(beingDrained, drainIs(Drain{State: DrainRunning}), func(o *Observation) { o.Now = begun.Add(time.Hour) }), nil,
			[]Fact{FactPolicy, FactInhibitors, FactCoordinators},
		},
		"past the point of no return": {makeObservation(goingDown), nil, []Fact{FactLedger}},
	} {
		t.Run(name, func(t *testing.T) {
			o := tc.o
			var got []Fact
			for ask := o.missing(); ask != FactNone; ask = o.missing() {
				if slices.Contains(got, ask) {
					t.Fatalf("asked twice: %v", append(got, ask))
				}
				got = append(got, ask)
				if answer := tc.answers[ask]; answer != nil {
					answer(&o)
				}
				o.Sought = append(o.Sought, ask)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
