package updateengine

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/updatestatus"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// Possible statuses.
var (
	idle        = updatestatus.Status{}
	needUnnamed = updatestatus.Status{Operation: updatestatus.UpdatedNeedReboot}
	need4001    = updatestatus.Status{Operation: updatestatus.UpdatedNeedReboot, Version: "4001.0.0"}
	need4002    = updatestatus.Status{Operation: updatestatus.UpdatedNeedReboot, Version: "4002.0.0"}
	downloading = updatestatus.Status{Operation: 4, Version: "4002.0.0"}
	failed      = updatestatus.Status{Operation: updatestatus.ReportingErrorEvent}
)

// began is the time of every input that is not later.
var began = time.Unix(1_800_000_000, 0)

func engineReports(s updatestatus.Status) input { return input{at: began, status: s, fromEngine: true} }
func otherReports(s updatestatus.Status) input  { return input{at: began, status: s} }

// later moves an input to some time after the others.
func later(after time.Duration, in input) input {
	in.at = began.Add(after)
	return in
}

// ending returns the report of a need that ends a day and some time after began.
func ending(r engine.Report, after time.Duration) engine.Report {
	r.Until = began.Add(24*time.Hour + after).UTC()
	return r
}

// Reports that the tables below expect.
var (
	upToDate = engine.Report{
		Engine: "update-engine", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate,
		Message: "update_engine has no update that waits for a reboot.",
	}
	needed = engine.Report{
		Engine: "update-engine", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged,
		Message: "update_engine has installed an update; it runs after a reboot.",
	}
	needed4001 = engine.Report{
		Engine: "update-engine", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: "4001.0.0",
		Message: "update_engine has installed version 4001.0.0; it runs after a reboot.",
	}
	needed4002 = engine.Report{
		Engine: "update-engine", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: "4002.0.0",
		Message: "update_engine has installed version 4002.0.0; it runs after a reboot.",
	}
	byBroadcast = engine.Report{
		Engine: "update-engine", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Until: began.Add(24 * time.Hour).UTC(),
		Message: "A StatusUpdate broadcast asks for a reboot; update_engine itself does not.",
	}
	byBroadcast4001 = engine.Report{
		Engine: "update-engine", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Until: began.Add(24 * time.Hour).UTC(), Version: "4001.0.0",
		Message: "A StatusUpdate broadcast asks for a reboot into version 4001.0.0; update_engine itself does not.",
	}
)

func TestNeed(t *testing.T) {
	cases := map[string]struct {
		before engine.Report
		inputs []input
		want   engine.Report
	}{
		"an idle engine needs nothing": {inputs: []input{engineReports(idle)}, want: upToDate},
		"an engine that downloads needs nothing yet, and stages no version": {
			inputs: []input{engineReports(downloading)}, want: upToDate,
		},
		"an engine found at NEED_REBOOT needs one (behaviour 2)": {
			inputs: []input{engineReports(need4001)}, want: needed4001,
		},
		"a version of 0.0.0 means unknown": {inputs: []input{engineReports(needUnnamed)}, want: needed},
		"a need ends when the engine leaves NEED_REBOOT (behaviour 3)": {
			inputs: []input{engineReports(need4001), engineReports(idle)}, want: upToDate,
		},
		"a need ends when the engine checks for the next update": {
			inputs: []input{engineReports(need4001), engineReports(downloading)}, want: upToDate,
		},
		"a restarted engine keeps the version it has forgotten (behaviour 8)": {
			inputs: []input{engineReports(need4001), engineReports(needUnnamed)}, want: needed4001,
		},
		"a newer version overwrites an older one": {
			inputs: []input{engineReports(need4001), engineReports(need4002)}, want: needed4002,
		},
		"a version does not outlive its need": {
			inputs: []input{engineReports(need4001), engineReports(idle), engineReports(needUnnamed)}, want: needed,
		},
		"another sender's broadcast is a need (behaviour 1)": {
			inputs: []input{engineReports(idle), otherReports(needUnnamed)}, want: byBroadcast,
		},
		"a broadcast need outlives the engine's IDLE": {
			inputs: []input{engineReports(idle), otherReports(needUnnamed), engineReports(idle)}, want: byBroadcast,
		},
		"a broadcast need outlives the engine's checks and errors": {
			inputs: []input{otherReports(needUnnamed), engineReports(downloading), engineReports(failed), engineReports(idle)},
			want:   byBroadcast,
		},
		"a need is received without any engine": {inputs: []input{otherReports(needUnnamed)}, want: byBroadcast},
		"a broadcast need ends when the engine enters NEED_REBOOT and leaves it": {
			inputs: []input{otherReports(needUnnamed), engineReports(need4001), engineReports(idle)}, want: upToDate,
		},
		"a broadcast need that the engine confirms becomes the engine's": {
			inputs: []input{otherReports(needUnnamed), engineReports(need4001)}, want: needed4001,
		},
		"another sender cannot withdraw a need of the engine": {
			inputs: []input{engineReports(need4001), otherReports(idle)}, want: needed4001,
		},
		"another sender cannot withdraw a need of another sender": {
			inputs: []input{engineReports(idle), otherReports(needUnnamed), otherReports(idle)}, want: byBroadcast,
		},
		"another sender's version is reported": {
			inputs: []input{engineReports(idle), otherReports(need4001)}, want: byBroadcast4001,
		},
		"another sender's second version is not reported": {
			inputs: []input{otherReports(need4001), otherReports(need4002), otherReports(needUnnamed)}, want: byBroadcast4001,
		},
		"another sender cannot change the engine's version": {
			inputs: []input{engineReports(need4001), otherReports(need4002)}, want: needed4001,
		},
		"a restarted agent keeps a need until it has queried the engine": {before: needed4001, want: needed4001},
		"a restarted agent keeps the version the engine has forgotten": {
			before: needed4001, inputs: []input{engineReports(needUnnamed)}, want: needed4001,
		},
		"a restarted agent drops a need that was reset during the restart": {
			before: needed4001, inputs: []input{engineReports(idle)}, want: upToDate,
		},
		"a restarted agent keeps a broadcast need although the engine reports IDLE": {
			before: byBroadcast, inputs: []input{engineReports(idle)}, want: byBroadcast,
		},
		"a restarted agent takes nothing from a report without a need": {before: upToDate, want: upToDate},
		"a broadcast need stays for a day (behaviour 1)": {
			inputs: []input{otherReports(needUnnamed), later(24*time.Hour-1, engineReports(idle))}, want: byBroadcast,
		},
		"a broadcast need ends after a day": {
			inputs: []input{otherReports(need4001), later(24*time.Hour, engineReports(idle))}, want: upToDate,
		},
		"a broadcast need ends after a day without the engine": {
			inputs: []input{otherReports(need4001), later(24*time.Hour, input{})}, want: upToDate,
		},
		"a broadcast need ends after a day although engines are queried": {
			inputs: []input{engineReports(idle), otherReports(need4001), later(24*time.Hour, otherReports(idle))}, want: upToDate,
		},
		"a broadcast need that the engine confirms does not end": {
			inputs: []input{otherReports(needUnnamed), engineReports(need4001), later(48*time.Hour, input{})}, want: needed4001,
		},
		"a broadcast need that has ended is needed again once the engine confirms it": {
			inputs: []input{otherReports(needUnnamed), later(24*time.Hour, engineReports(need4001))}, want: needed4001,
		},
		"a second broadcast does not prolong the need": {
			inputs: []input{engineReports(idle), otherReports(needUnnamed), later(time.Hour, otherReports(needUnnamed))}, want: byBroadcast,
		},
		"a broadcast after the end is a new need": {
			inputs: []input{otherReports(need4001), later(24*time.Hour, otherReports(needUnnamed))}, want: ending(byBroadcast, 24*time.Hour),
		},
		"a restarted agent keeps the end of a broadcast need": {
			before: ending(byBroadcast, -time.Hour), inputs: []input{engineReports(idle)}, want: ending(byBroadcast, -time.Hour),
		},
		"a restarted agent drops a broadcast need that has ended": {
			before: ending(byBroadcast, -25*time.Hour), inputs: []input{engineReports(idle)}, want: upToDate,
		},
		"a restarted agent waits at most a day, even if the clock was wrong": {
			before: ending(byBroadcast, 1000*time.Hour), inputs: []input{engineReports(idle)}, want: byBroadcast,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := resumed(tc.before, began)
			for _, in := range tc.inputs {
				s = next(s, in)
			}
			if diff := cmp.Diff(tc.want, s.report()); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

// The clock of the host may be set back while the agent runs. The text of a time ends in m=… if it
// has a monotonic reading.
func TestNeed_EndsByTheMonotonicClock(t *testing.T) {
	now := time.Now()
	for name, s := range map[string]state{
		"received": next(state{}, input{at: now, status: needUnnamed}),
		"resumed":  resumed(ending(byBroadcast, now.Sub(began)-time.Hour), now),
	} {
		if got := s.until.String(); !strings.Contains(got, " m=") {
			t.Errorf("%s: until %s", name, got)
		}
	}
}

// inputs generates any possible input.
func inputs() *rapid.Generator[input] {
	return rapid.Custom(func(t *rapid.T) input {
		if rapid.IntRange(0, 4).Draw(t, "time alone") == 0 {
			return input{at: began}
		}
		return input{
			at:         began,
			status:     rapid.SampledFrom([]updatestatus.Status{idle, needUnnamed, need4001, need4002, downloading, failed}).Draw(t, "status"),
			fromEngine: rapid.Bool().Draw(t, "from the engine"),
		}
	})
}

func TestNeed_Invariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := resumed(engine.Report{}, began)
		asked := false // whether somebody has announced a need that the engine has not ended since
		atNeed := false
		for _, in := range rapid.SliceOf(inputs()).Draw(t, "inputs") {
			after := next(s, in)
			if next(after, in) != after {
				t.Fatalf("hearing %+v twice is more than hearing it once", in)
			}
			switch {
			case needsReboot(in.status):
				asked = true
			case in.fromEngine && atNeed:
				asked = false
			}
			if in.fromEngine {
				atNeed = needsReboot(in.status)
			}
			if got := after.report().State == engine.Needed; got != asked {
				t.Fatalf("after %+v: needed is %v, want %v", in, got, asked)
			}
			if len(after.report().Message) == 0 || after.need == none && after.version != "" {
				t.Fatalf("after %+v: %+v", in, after)
			}
			s = after
		}
	})
}
