package cosupdateengine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// The things that can be reported.
var (
	idle        = status{}
	needUnnamed = status{operation: opUpdatedNeedReboot}
	need17800   = status{operation: opUpdatedNeedReboot, version: "17800.147.54"}
	need17900   = status{operation: opUpdatedNeedReboot, version: "17900.1.2"}
	installed   = status{operation: opUpdatedNeedReboot, version: "17800.147.54", install: true}
	checking    = status{operation: 1}
	downloading = status{operation: 3, version: "17900.1.2"}
	finalizing  = status{operation: 5, version: "17900.1.2"}
	failed      = status{operation: opReportingErrorEvent, version: "17900.1.2", attemptError: 37}
	broken      = status{operation: opError}
	deferred    = status{operation: opUpdatedButDeferred, version: "17900.1.2"}
)

func says(s status) input   { return input{status: s} }
func lost(why string) input { return input{unreachable: why} }

const gone = "COS update_engine is not on the system bus."

func notNeeded(message string) engine.Report {
	return engine.Report{
		Engine: "cos-update-engine", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: message,
	}
}

func unknown(message string) engine.Report {
	return engine.Report{
		Engine: "cos-update-engine", State: engine.Unknown, Reason: v1alpha1.ReasonEngineUnreachable, Message: message,
	}
}

func needed(version, message string) engine.Report {
	return engine.Report{
		Engine: "cos-update-engine", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: version,
		Message: message,
	}
}

// Reports that the tests want.
var (
	upToDate    = notNeeded("COS update_engine has no update that waits for a reboot.")
	absent      = unknown(gone)
	anyNeed     = needed("", "COS update_engine has installed an update; it runs after a reboot.")
	needed17800 = needed("17800.147.54", "COS update_engine has installed version 17800.147.54; it runs after a reboot.")
	needed17900 = needed("17900.1.2", "COS update_engine has installed version 17900.1.2; it runs after a reboot.")
)

func TestNeed(t *testing.T) {
	cases := map[string]struct {
		before engine.Report
		inputs []input
		want   engine.Report
	}{
		"nothing received yet is unknown": {want: unknown("COS update_engine has not been asked yet.")},
		"an idle engine needs nothing":    {inputs: []input{says(idle)}, want: upToDate},
		"operation 6 is a need (behaviour 9)": {
			inputs: []input{says(need17800)}, want: needed17800,
		},
		"operation 6 of an install is none (behaviour 9)": {
			inputs: []input{says(installed)}, want: upToDate,
		},
		"a download stages no version yet": {inputs: []input{says(downloading)}, want: upToDate},
		"a need without a version":         {inputs: []input{says(needUnnamed)}, want: anyNeed},
		"a restarted engine keeps the version it has forgotten (behaviour 8)": {
			inputs: []input{says(need17800), lost(gone), says(needUnnamed)}, want: needed17800,
		},
		"a newer version overwrites an older one": {
			inputs: []input{says(need17800), says(need17900)}, want: needed17900,
		},
		"the version of an install or a download is not remembered": {
			inputs: []input{says(installed), says(downloading), says(needUnnamed)}, want: anyNeed,
		},
		"a version does not outlive its need": {
			inputs: []input{says(need17800), says(idle), says(needUnnamed)}, want: anyNeed,
		},
		"a need falls when the engine leaves it (behaviour 3)": {
			inputs: []input{says(need17800), says(idle)}, want: upToDate,
		},
		"a check for a newer update withdraws nothing": {
			inputs: []input{says(need17800), says(checking)}, want: needed17800,
		},
		"a check that finds none leaves what was there": {
			inputs: []input{says(need17800), says(checking), says(needUnnamed)}, want: needed17800,
		},
		"a check after which the engine is idle withdraws the need": {
			inputs: []input{says(need17800), says(checking), says(idle)}, want: upToDate,
		},
		"a check of an idle engine is no need": {inputs: []input{says(idle), says(checking)}, want: upToDate},
		"a check of an engine that was gone is an answer": {
			inputs: []input{says(idle), lost(gone), says(checking)}, want: upToDate,
		},
		"a download overwrites what was staged": {
			inputs: []input{says(need17800), says(checking), says(downloading)}, want: upToDate,
		},
		"so does an update that is being finalized": {
			inputs: []input{says(need17800), says(finalizing)}, want: upToDate,
		},
		"a newer update takes the place of an older one": {
			inputs: []input{says(need17800), says(checking), says(downloading), says(finalizing), says(need17900)}, want: needed17900,
		},
		"a restarted agent keeps a need while the engine checks": {
			before: needed17800, inputs: []input{says(checking)}, want: needed17800,
		},
		"an install under way is no need": {
			// update_engine begins one only while it is idle, so nothing can be staged any more.
			inputs: []input{says(need17800), says(installed)}, want: upToDate,
		},
		"a need outlives the engine (behaviour 6)": {
			inputs: []input{says(need17800), lost(gone)}, want: needed17800,
		},
		"an engine that is gone is unknown, not up to date (behaviour 7)": {
			inputs: []input{says(idle), lost(gone)}, want: absent,
		},
		"a failed attempt is reported as what it is": {
			inputs: []input{says(failed)},
			want: notNeeded("COS update_engine reports that its last attempt failed (REPORTING_ERROR_EVENT, error code 37); " +
				"no update waits for a reboot."),
		},
		"an error is reported as what it is": {
			inputs: []input{says(broken)},
			want:   notNeeded("COS update_engine reports an error (ERROR); no update waits for a reboot."),
		},
		"a deferred update is no need, and reported": {
			inputs: []input{says(deferred)},
			want:   notNeeded("COS update_engine has deferred version 17900.1.2 (UPDATED_BUT_DEFERRED); a reboot would not apply it."),
		},
		"a restarted agent keeps a need until the engine is asked": {
			before: needed17800, inputs: []input{lost(gone)}, want: needed17800,
		},
		"a restarted agent keeps the version the engine has forgotten": {
			before: needed17800, inputs: []input{says(needUnnamed)}, want: needed17800,
		},
		"a restarted agent drops a need that was reset meanwhile": {
			before: needed17800, inputs: []input{says(idle)}, want: upToDate,
		},
		"a restarted agent takes nothing from a report without a need": {
			before: upToDate, inputs: []input{lost(gone)}, want: absent,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := resumed(tc.before)
			for _, in := range tc.inputs {
				s = next(s, in)
			}
			if diff := cmp.Diff(tc.want, s.report()); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNeed_IsWhatTheEngineReportedLastBesideItsChecks(t *testing.T) {
	all := []status{idle, checking, needUnnamed, need17800, need17900, installed, downloading, finalizing, failed, broken, deferred}
	rapid.Check(t, func(t *rapid.T) {
		s := resumed(engine.Report{})
		want := false
		for range rapid.IntRange(0, 20).Draw(t, "inputs") {
			in := lost(gone)
			if rapid.Bool().Draw(t, "reachable") {
				in = says(rapid.SampledFrom(all).Draw(t, "status"))
				want = in.status.needsReboot() || want && in.status == checking
			}
			s = next(s, in)
			if next(s, in) != s {
				t.Fatalf("hearing %+v twice is more than hearing it once", in)
			}
			if got := s.report().State == engine.Needed; got != want {
				t.Fatalf("after %+v: needed is %v, want %v", in, got, want)
			}
		}
	})
}
