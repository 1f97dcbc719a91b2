package step

import (
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// reportedBefore is what the engines have reported so far.
func reportedBefore(bootID string, engines ...protocol.EngineRecord) func(*Observation) {
	return func(o *Observation) { o.Before = &protocol.Engines{BootID: bootID, Reported: engines} }
}

// recorded is what the next process of the agent reads of what this one writes.
func recorded(t *testing.T, o Observation) *protocol.Engines {
	t.Helper()
	value := NodeStatusOf(o).Annotations[v1alpha1.AnnotationEngines]
	if value == nil {
		return nil
	}
	engines, err := protocol.ParseEngines(map[string]string{v1alpha1.AnnotationEngines: *value})
	if err != nil {
		t.Fatal(err)
	}
	return engines
}

// TestBefore: what an engine has reported survives a restart of the agent within the boot (behaviours 8 and 13).
func TestBefore(t *testing.T) {
	asks := engine.Report{Engine: "update-engine", State: engine.Needed, Version: "4593.1.0"}
	broadcastNeed := engine.Report{Engine: "update-engine", State: engine.Needed, Until: now.Add(24 * time.Hour)}
	known, quiet := engine.Report{Engine: "update-engine", State: engine.Unknown}, protocol.EngineRecord{Name: "update-engine"}
	unversioned := engine.Report{Engine: "update-engine", State: engine.Needed}
	rpm := engine.Report{Engine: "rpm-ostree", State: engine.Needed, Version: "40.2", Running: "40.1 (0123456789ab.0)", Message: "Staged too."}
	both := engineReports(func() engine.Report { r := stagedReport(""); r.Until = now.Add(24 * time.Hour); return r }(), rpm,
		engine.Report{Engine: "sentinel", State: engine.NotNeeded}, engine.Report{Engine: "cos-update-engine", State: engine.Absent})
	rpm.Message = ""
	odd := func(version string) engine.Report {
		return engine.Report{Engine: "update-engine", State: engine.Needed, Version: version}
	}
	cases := map[string]struct {
		o            Observation
		name, bootID string
		want         engine.Report
	}{
		"no engine has reported":              {makeObservation(engineReports()), "update-engine", boot, engine.Report{}},
		"a need of this boot":                 {makeObservation(staged("4593.1.0")), "update-engine", boot, asks},
		"a need beside a request":             {makeObservation(staged("4593.1.0"), requesting("why")), "update-engine", boot, asks},
		"a need of another boot has fallen":   {makeObservation(staged("4593.1.0")), "update-engine", otherBoot, engine.Report{}},
		"a need of another engine":            {makeObservation(staged("4593.1.0")), "rpm-ostree", boot, engine.Report{}},
		"no need, but it was there":           {makeObservation(), "update-engine", boot, known},
		"gone, but it was there":              {makeObservation(unreachable, reportedBefore(boot, quiet)), "update-engine", boot, known},
		"gone in another boot":                {makeObservation(unreachable, reportedBefore(boot, quiet)), "update-engine", otherBoot, engine.Report{}},
		"named, and not on the host":          {makeObservation(unreachable), "update-engine", boot, engine.Report{}},
		"there in another boot":               {makeObservation(unreachable, reportedBefore(otherBoot, quiet)), "update-engine", boot, engine.Report{}},
		"a broadcast need":                    {makeObservation(broadcast("")), "update-engine", boot, broadcastNeed},
		"no version":                          {makeObservation(staged("")), "update-engine", boot, unversioned},
		"a version that ends oddly":           {makeObservation(staged("1.")), "update-engine", boot, odd("1.")},
		"a version nobody would choose":       {makeObservation(staged("1), b (asks")), "update-engine", boot, odd("1), b (asks")},
		"each of several: one by broadcast":   {makeObservation(both), "update-engine", boot, broadcastNeed},
		"each of several: one with a version": {makeObservation(both), "rpm-ostree", boot, rpm},
		"each of several: one without a need": {makeObservation(both), "sentinel", boot, engine.Report{Engine: "sentinel", State: engine.Unknown}},
		"each of several: an absent one":      {makeObservation(both), "cos-update-engine", boot, engine.Report{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Before(recorded(t, tc.o), tc.name, tc.bootID)); diff != "" {
				t.Errorf("before (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrigin_Again: a need that has outlived a granted reboot, until its engine does not ask or cannot be asked.
func TestOrigin_Again(t *testing.T) {
	const plain, again = "Staged. Reported by update-engine (asks).", "Staged. Reported by update-engine (asks again after the reboot)."
	asks := protocol.EngineRecord{Name: "update-engine", Asks: true}
	quiet := protocol.EngineRecord{Name: "update-engine"}
	asksAgain := protocol.EngineRecord{Name: "update-engine", Asks: true, Again: true}
	cases := map[string]struct {
		o    Observation
		want string
	}{
		"the first report after the reboot":         {makeObservation(rebootedBefore, staged(""), reportedBefore(otherBoot, asks)), again},
		"a later one":                               {makeObservation(rebootedBefore, staged(""), reportedBefore(boot, asksAgain)), again},
		"one in the next attempt":                   {makeObservation(beingDrained, staged(""), reportedBefore(boot, asksAgain)), again},
		"one that this boot has seen absent":        {makeObservation(rebootedBefore, staged(""), reportedBefore(boot, quiet)), plain},
		"one that came after that":                  {makeObservation(rebootedBefore, staged(""), reportedBefore(boot, asks)), plain},
		"one that was not there before the reboot":  {makeObservation(rebootedBefore, staged(""), reportedBefore(otherBoot, quiet)), plain},
		"another engine's":                          {makeObservation(rebootedBefore, staged(""), reportedBefore(otherBoot, protocol.EngineRecord{Name: "sentinel", Asks: true})), plain},
		"one that came after the boot of the grant": {makeObservation(rebootedBefore, staged(""), reportedBefore("boot-1b", asks)), plain},
		"an attempt of this boot":                   {makeObservation(beingDrained, staged(""), reportedBefore(boot, asks)), plain},
		"a reboot by somebody else":                 {makeObservation(staged(""), reportedBefore(otherBoot, asks)), plain},
		"nothing is known of before":                {makeObservation(rebootedBefore, staged("")), plain},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, need(tc.o).Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			if record := recorded(t, tc.o); record.BootID != boot || record.Reported[0].Again != (tc.want == again) {
				t.Errorf("the next process reads %+v", record)
			}
		})
	}
}

// TestOrigin_Version: one that could be mistaken for more of the sentence is in the record alone.
func TestOrigin_Version(t *testing.T) {
	if got, want := need(makeObservation(staged("1), b (asks"))).Message, "Staged. Reported by update-engine (asks)."; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

// FuzzOrigin: whatever an engine and an administrator say, the next process reads of each engine what this one wrote.
func FuzzOrigin(f *testing.F) {
	f.Add("update_engine has installed an update.", "4593.1.0", true, "new firmware")
	f.Add("", "1), sentinel (asks", false, "Reported by sentinel (asks).")
	f.Fuzz(func(t *testing.T, message, version string, broadcastNeed bool, why string) {
		report := engine.Report{Engine: "update-engine", State: engine.Needed, Version: version, Message: message}
		if broadcastNeed {
			report.Until = now
		}
		o := makeObservation(engineReports(report, engine.Report{Engine: "sentinel", State: engine.NotNeeded}), requesting(why))
		engines := recorded(t, o)
		got := Before(engines, "update-engine", boot)
		if got.State != engine.Needed || !got.Until.Equal(report.Until) || utf8.ValidString(version) && got.Version != version {
			t.Errorf("read back %+v of %v", got, engines)
		}
		if other := Before(engines, "sentinel", boot); other.State != engine.Unknown {
			t.Errorf("read back %+v of sentinel in %v", other, engines)
		}
	})
}

func unreachable(o *Observation) {
	engineReports(engine.Report{
		Engine: "update-engine", State: engine.Unknown, Reason: v1alpha1.ReasonEngineUnreachable, Message: "No bus.",
	})(o)
}
