package cosupdateengine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/updatestatus"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// The things that can be reported.
var (
	idle        = status{}
	needUnnamed = status{operation: updatestatus.UpdatedNeedReboot}
	need17800   = status{operation: updatestatus.UpdatedNeedReboot, version: "17800.147.54"}
	need17900   = status{operation: updatestatus.UpdatedNeedReboot, version: "17900.1.2"}
	installed   = status{operation: updatestatus.UpdatedNeedReboot, version: "17800.147.54", install: true}
	checking    = status{operation: 1}
	downloading = status{operation: 3, version: "17900.1.2"}
	finalizing  = status{operation: 5, version: "17900.1.2"}
	failed      = status{operation: updatestatus.ReportingErrorEvent, version: "17900.1.2", attemptError: 37}
	broken      = status{operation: updatestatus.Error}
	deferred    = status{operation: updatestatus.UpdatedButDeferred, version: "17900.1.2"}
)

func notNeeded(message string) engine.Report {
	return engine.Report{
		Engine: "cos-update-engine", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: message,
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
	absent      = engine.Unreachable(Name, "COS update_engine is not on the system bus.")
	anyNeed     = needed("", "COS update_engine has installed an update; it runs after a reboot.")
	needed17800 = needed("17800.147.54", "COS update_engine has installed version 17800.147.54; it runs after a reboot.")
	needed17900 = needed("17900.1.2", "COS update_engine has installed version 17900.1.2; it runs after a reboot.")
)

func TestNeed(t *testing.T) {
	cases := map[string]struct {
		before   engine.Report
		received []status
		want     engine.Report
	}{
		"an idle engine needs nothing": {received: []status{idle}, want: upToDate},
		"operation 6 is a need (behaviour 9)": {
			received: []status{need17800}, want: needed17800,
		},
		"operation 6 of an install is none (behaviour 9)": {
			received: []status{installed}, want: upToDate,
		},
		"a download stages no version yet": {received: []status{downloading}, want: upToDate},
		"a need without a version":         {received: []status{needUnnamed}, want: anyNeed},
		"a restarted engine keeps the version it has forgotten (behaviour 8)": {
			received: []status{need17800, needUnnamed}, want: needed17800,
		},
		"a newer version overwrites an older one": {
			received: []status{need17800, need17900}, want: needed17900,
		},
		"the version of an install or a download is not remembered": {
			received: []status{installed, downloading, needUnnamed}, want: anyNeed,
		},
		"a version does not outlive its need": {
			received: []status{need17800, idle, needUnnamed}, want: anyNeed,
		},
		"a need falls when the engine leaves it (behaviour 3)": {
			received: []status{need17800, idle}, want: upToDate,
		},
		"a check for a newer update withdraws nothing": {
			received: []status{need17800, checking}, want: needed17800,
		},
		"a check that finds none leaves what was there": {
			received: []status{need17800, checking, needUnnamed}, want: needed17800,
		},
		"a check after which the engine is idle withdraws the need": {
			received: []status{need17800, checking, idle}, want: upToDate,
		},
		"a check that fails leaves what was there": {
			received: []status{need17800, checking, failed}, want: needed17800,
		},
		"a check that fails, as the engine reports it afterwards": {
			received: []status{need17800, checking, failed, needUnnamed}, want: needed17800,
		},
		"a check that fails and after which the engine is idle withdraws the need": {
			received: []status{need17800, checking, failed, idle}, want: upToDate,
		},
		"a download that fails has overwritten what was there": {
			received: []status{need17800, checking, downloading, failed},
			want: notNeeded("COS update_engine reports that its last attempt failed (REPORTING_ERROR_EVENT, error code 37); " +
				"no update waits for a reboot."),
		},
		"a check of an idle engine is no need": {received: []status{idle, checking}, want: upToDate},
		"a download overwrites what was staged": {
			received: []status{need17800, checking, downloading}, want: upToDate,
		},
		"so does an update that is being finalized": {
			received: []status{need17800, finalizing}, want: upToDate,
		},
		"a newer update takes the place of an older one": {
			received: []status{need17800, checking, downloading, finalizing, need17900}, want: needed17900,
		},
		"a restarted agent keeps a need while the engine checks": {
			before: needed17800, received: []status{checking}, want: needed17800,
		},
		"an install under way is no need": {
			// update_engine begins one only while it is idle, so nothing can be staged any more.
			received: []status{need17800, installed}, want: upToDate,
		},
		"a failed attempt is reported as what it is": {
			received: []status{failed},
			want: notNeeded("COS update_engine reports that its last attempt failed (REPORTING_ERROR_EVENT, error code 37); " +
				"no update waits for a reboot."),
		},
		"an error is reported as what it is": {
			received: []status{broken},
			want:     notNeeded("COS update_engine reports an error (ERROR); no update waits for a reboot."),
		},
		"a deferred update is no need, and reported": {
			received: []status{deferred},
			want:     notNeeded("COS update_engine has deferred version 17900.1.2 (UPDATED_BUT_DEFERRED); a reboot would not apply it."),
		},
		"a restarted agent keeps a need until the engine is asked": {before: needed17800, want: needed17800},
		"a restarted agent keeps the version the engine has forgotten": {
			before: needed17800, received: []status{needUnnamed}, want: needed17800,
		},
		"a restarted agent drops a need that was reset meanwhile": {
			before: needed17800, received: []status{idle}, want: upToDate,
		},
		"a restarted agent takes nothing from a report without a need": {before: upToDate, want: upToDate},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := resumed(tc.before)
			for _, received := range tc.received {
				s = s.next(received)
			}
			if diff := cmp.Diff(tc.want, s.report()); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNeed_IsWhatTheEngineReportedLastBesideItsChecksAndTheirFailures(t *testing.T) {
	all := []status{idle, checking, needUnnamed, need17800, need17900, installed, downloading, finalizing, failed, broken, deferred}
	rapid.Check(t, func(t *rapid.T) {
		s := resumed(engine.Report{})
		want := false
		for range rapid.IntRange(0, 20).Draw(t, "inputs") {
			received := rapid.SampledFrom(all).Draw(t, "status")
			want = received.needsReboot() || want && (received == checking || received == failed)
			s = s.next(received)
			if s.next(received) != s {
				t.Fatalf("receiving %+v twice is more than receiving it once", received)
			}
			if got := s.report().State == engine.Needed; got != want {
				t.Fatalf("after %+v: needed is %v, want %v", received, got, want)
			}
		}
	})
}
