package step

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestNeed(t *testing.T) {
	reports := func(state corev1.ConditionStatus, reason v1alpha1.Reason, message string) corev1.NodeCondition {
		return condition(v1alpha1.NodeRebootRequired, state, string(reason), message)
	}
	const upToDate = "Nothing is staged. Reported by update-engine."
	const longUp = "Nothing is staged. The node has been up for longer than 24h0m0s, its maximum under spec.maxUptime of its policy. " +
		"Reported by update-engine."
	sentinel := engine.Report{Engine: "sentinel", State: engine.NotNeeded, Reason: v1alpha1.ReasonUpToDate, Message: "No file."}
	gone := engine.Report{Engine: "update-engine", State: engine.Unknown, Reason: v1alpha1.ReasonEngineUnreachable, Message: "No bus."}
	absent := engine.Report{Engine: "rpm-ostree", State: engine.Absent, Message: "Not here."}
	cases[corev1.NodeCondition]{
		"nothing": {makeObservation(), reports(corev1.ConditionFalse, v1alpha1.ReasonUpToDate, upToDate)},
		"an update": {
			makeObservation(staged("4593.1.0")),
			reports(corev1.ConditionTrue, v1alpha1.ReasonUpdateStaged,
				"Staged. Reported by update-engine (asks for version 4593.1.0)."),
		},
		"an unconfirmed update": {
			makeObservation(broadcast("")),
			reports(corev1.ConditionTrue, v1alpha1.ReasonUpdateStaged, "Staged. Reported by update-engine (asks by broadcast until Sun 2026-11-22 22:00:00 UTC)."),
		},
		"a request": {
			makeObservation(requesting("new firmware")),
			reports(corev1.ConditionTrue, v1alpha1.ReasonRequested, `An administrator asks for a reboot: "new firmware". `+upToDate),
		},
		"a request without text": {
			makeObservation(requesting("")),
			reports(corev1.ConditionTrue, v1alpha1.ReasonRequested, `An administrator asks for a reboot: "". `+upToDate),
		},
		"a request by label": {
			makeObservation(labelling("gpu-lost")),
			reports(corev1.ConditionTrue, v1alpha1.ReasonRequested,
				`Label reboot-operator.io/reboot-requested asks for a reboot: "gpu-lost". Nothing is staged. Reported by update-engine.`),
		},
		"an update and a request are both reported": {
			makeObservation(staged("1"), requesting("new firmware")),
			reports(corev1.ConditionTrue, v1alpha1.ReasonUpdateStaged,
				`An administrator asks for a reboot: "new firmware". Staged. Reported by update-engine (asks for version 1).`),
		},
		"engines in use are named, absent ones are not": {
			makeObservation(engineReports(stagedReport("1"), absent, sentinel)),
			reports(corev1.ConditionTrue, v1alpha1.ReasonUpdateStaged,
				"Staged. Reported by update-engine (asks for version 1), sentinel."),
		},
		"an engine that vanished does not count as a need, whatever others report (behaviour 7)": {
			makeObservation(engineReports(gone, sentinel)),
			reports(corev1.ConditionUnknown, v1alpha1.ReasonEngineUnreachable,
				"No bus. No file. Reported by update-engine, sentinel."),
		},
		"without an engine the need is unknown (behaviour 7)": {
			makeObservation(engineReports(absent)),
			reports(corev1.ConditionUnknown, v1alpha1.ReasonEngineUnreachable, engine.Merge([]engine.Report{absent}).Message),
		},
		"an uptime at its maximum": {
			makeObservation(up(24*time.Hour, 24*time.Hour)),
			reports(corev1.ConditionTrue, v1alpha1.ReasonMaxUptime, longUp),
		},
		"an uptime beyond it, with the same message": {
			makeObservation(up(1000*time.Hour, 24*time.Hour)),
			reports(corev1.ConditionTrue, v1alpha1.ReasonMaxUptime, longUp),
		},
		"an uptime below its maximum": {makeObservation(up(24*time.Hour-1, 24*time.Hour)), reports(corev1.ConditionFalse, v1alpha1.ReasonUpToDate, upToDate)},
		"an uptime without a maximum": {makeObservation(up(1000*time.Hour, 0)), reports(corev1.ConditionFalse, v1alpha1.ReasonUpToDate, upToDate)},
		"an unreadable uptime":        {makeObservation(up(0, 24*time.Hour)), reports(corev1.ConditionFalse, v1alpha1.ReasonUpToDate, upToDate)},
		"a long uptime, and an update": {
			makeObservation(up(24*time.Hour, 24*time.Hour), staged("1")),
			reports(corev1.ConditionTrue, v1alpha1.ReasonUpdateStaged, "Staged. The node has been up for longer than 24h0m0s, its maximum under spec.maxUptime of its policy. "+
				"Reported by update-engine (asks for version 1)."),
		},
		"a long uptime, and a request": {
			makeObservation(up(24*time.Hour, 24*time.Hour), requesting("x")),
			reports(corev1.ConditionTrue, v1alpha1.ReasonRequested, `An administrator asks for a reboot: "x". `+longUp),
		},
		"a long uptime, and no engine that responds": {
			makeObservation(up(24*time.Hour, 24*time.Hour), engineReports(gone)),
			reports(corev1.ConditionTrue, v1alpha1.ReasonMaxUptime,
				"No bus. The node has been up for longer than 24h0m0s, its maximum under spec.maxUptime of its policy. Reported by update-engine."),
		},
		"a request, and no engine that responds": {
			makeObservation(engineReports(gone), requesting("x")),
			reports(corev1.ConditionTrue, v1alpha1.ReasonRequested,
				`An administrator asks for a reboot: "x". No bus. Reported by update-engine.`),
		},
		"a FleetLock client": {
			makeObservation(asking(boot, 0)),
			reports(corev1.ConditionTrue, v1alpha1.ReasonFleetLockRequested,
				"FleetLock client n1 asks for a reboot. Reported by update-engine, fleetlock (asks)."),
		},
		"a FleetLock client and an administrator": {
			makeObservation(asking(boot, 0), requesting("new firmware")),
			reports(corev1.ConditionTrue, v1alpha1.ReasonFleetLockRequested,
				`An administrator asks for a reboot: "new firmware". FleetLock client n1 asks for a reboot. Reported by update-engine, fleetlock (asks).`),
		},
		"a FleetLock client that has not asked for an hour": {
			makeObservation(asking(boot, time.Hour)),
			reports(corev1.ConditionFalse, v1alpha1.ReasonUpToDate,
				"Nothing is staged. FleetLock client n1 does not ask for a reboot. Reported by update-engine, fleetlock."),
		},
		"a FleetLock client that asked in the previous boot": {
			makeObservation(asking(otherBoot, 0)),
			reports(corev1.ConditionFalse, v1alpha1.ReasonUpToDate,
				"Nothing is staged. FleetLock client n1 does not ask for a reboot. Reported by update-engine, fleetlock."),
		},
		"a long text is cut at the end of a character": {
			makeObservation(requesting(strings.Repeat("x", 127) + "ß")),
			reports(corev1.ConditionTrue, v1alpha1.ReasonRequested,
				`An administrator asks for a reboot: "`+strings.Repeat("x", 125)+`…". `+upToDate),
		},
	}.each(t, need)
}

// TestFulfilled covers behaviour 13.
func TestFulfilled(t *testing.T) {
	reported := with(v1alpha1.NodeRebootRequired, corev1.ConditionTrue, `An administrator asks for a reboot: "new firmware". Staged.`)
	up := with(corev1.NodeMaintenanceInProgress, corev1.ConditionTrue, "")
	label := with(v1alpha1.NodeRebootRequired, corev1.ConditionTrue, `Label reboot-operator.io/reboot-requested asks for a reboot: "a". Reported by sentinel.`)
	cases[bool]{
		"a label":                         {makeObservation(labelling("a"), rebootedBefore, label, up), true},
		"another value":                   {makeObservation(labelling("b"), rebootedBefore, label, up), false},
		"a label and an annotation":       {makeObservation(labelling("new"), rebootedBefore, reported, up), false},
		"a label, but no boot":            {makeObservation(labelling("a"), goingDown, label, up), false},
		"the first report after the boot": {makeObservation(requesting("new firmware"), rebootedBefore, reported, up), true},
		"without a request":               {makeObservation(rebootedBefore, reported, up), false},
		"another text is another request": {makeObservation(requesting("newer firmware"), rebootedBefore, reported, up), false},
		"a later report":                  {makeObservation(requesting("new firmware"), rebootedBefore, reported), false},
		"before the boot has ended":       {makeObservation(requesting("new firmware"), goingDown, reported, up), false},
		"a reboot by somebody else does not answer the request":              {makeObservation(requesting("new firmware"), reported, up), false},
		"a reboot by hand long after the answer does not answer the request": {makeObservation(requesting("new firmware"), rebootedBefore, reported, recordedIn(otherBoot)), false},
		"another program's maintenance is not a boot":                        {makeObservation(requesting("new firmware"), rebootedBefore, reported, theirs, recordedIn(boot)), false},
		"another program's maintenance replaced the agent's":                 {makeObservation(requesting("new firmware"), rebootedBefore, reported, theirs, recordedIn(otherBoot)), true},
	}.each(t, func(o Observation) bool { return fulfilled(o, labelled(o)) || fulfilled(o, request(o)) })
}

func stagedReport(version string) engine.Report {
	return engine.Report{
		Engine: "update-engine", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: version, Message: "Staged.",
	}
}

func staged(version string) func(*Observation) { return engineReports(stagedReport(version)) }

func broadcast(version string) func(*Observation) {
	r := stagedReport(version)
	r.Until = now.Add(24 * time.Hour)
	return engineReports(r)
}

func requesting(why string) func(*Observation) {
	return func(o *Observation) { o.Requested, o.RequestedWhy = true, why }
}

// up sets the uptime of the host and its limit.
func up(uptime, most time.Duration) func(*Observation) {
	return func(o *Observation) { o.Uptime, o.MaxUptime = uptime, most }
}

func labelling(value string) func(*Observation) {
	return func(o *Observation) { o.Labelled, o.LabelValue = true, value }
}

// FuzzRequest shows that the condition is valid for any text that an administrator writes.
func FuzzRequest(f *testing.F) {
	f.Add("new firmware")
	f.Add("Reported by update-engine (asks for version 1).")
	f.Add("\xff\x00\n\"")
	f.Add(strings.Repeat("ä", 100))
	f.Fuzz(func(t *testing.T, why string) {
		asked := need(makeObservation(requesting(why)))
		quiet := need(makeObservation())
		// Quoting may turn one byte into four.
		if !utf8.ValidString(asked.Message) || len(asked.Message) > len(quiet.Message)+4*maxWhyBytes+64 {
			t.Errorf("message of %d bytes: %q", len(asked.Message), asked.Message)
		}
		if strings.ContainsAny(asked.Message, "\n\x00") {
			t.Errorf("more than one line: %q", asked.Message)
		}
	})
}

// reportedBefore sets the recorded reports of the engines.
func reportedBefore(bootID string, engines ...protocol.EngineRecord) func(*Observation) {
	return func(o *Observation) { o.Before = &protocol.Engines{BootID: bootID, Reported: engines} }
}

// recorded returns what the next process of the agent reads from the status that this one writes.
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

// TestBefore shows that an engine's report survives a restart of the agent within the boot
// (behaviours 8 and 13).
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
		"no engine has reported":                              {makeObservation(engineReports()), "update-engine", boot, engine.Report{}},
		"a need of this boot":                                 {makeObservation(staged("4593.1.0")), "update-engine", boot, asks},
		"a need and a request":                                {makeObservation(staged("4593.1.0"), requesting("why")), "update-engine", boot, asks},
		"a need of another boot has ended":                    {makeObservation(staged("4593.1.0")), "update-engine", otherBoot, engine.Report{}},
		"a need of another engine":                            {makeObservation(staged("4593.1.0")), "rpm-ostree", boot, engine.Report{}},
		"an engine without a need, found before in this boot": {makeObservation(), "update-engine", boot, known},
		"an engine that vanished in this boot":                {makeObservation(unreachable, reportedBefore(boot, quiet)), "update-engine", boot, known},
		"an engine that vanished in another boot":             {makeObservation(unreachable, reportedBefore(boot, quiet)), "update-engine", otherBoot, engine.Report{}},
		"a named engine that is not on the host":              {makeObservation(unreachable), "update-engine", boot, engine.Report{}},
		"an engine found in another boot":                     {makeObservation(unreachable, reportedBefore(otherBoot, quiet)), "update-engine", boot, engine.Report{}},
		"a broadcast need":                                    {makeObservation(broadcast("")), "update-engine", boot, broadcastNeed},
		"no version":                                          {makeObservation(staged("")), "update-engine", boot, unversioned},
		"a version that ends oddly":                           {makeObservation(staged("1.")), "update-engine", boot, odd("1.")},
		"a strange version":                                   {makeObservation(staged("1), b (asks")), "update-engine", boot, odd("1), b (asks")},
		"several engines: one need by broadcast":              {makeObservation(both), "update-engine", boot, broadcastNeed},
		"several engines: one need with a version":            {makeObservation(both), "rpm-ostree", boot, rpm},
		"several engines: one without a need":                 {makeObservation(both), "sentinel", boot, engine.Report{Engine: "sentinel", State: engine.Unknown}},
		"several engines: one is absent":                      {makeObservation(both), "cos-update-engine", boot, engine.Report{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Before(recorded(t, tc.o), tc.name, tc.bootID)); diff != "" {
				t.Errorf("before (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrigin_Again covers a need that has outlived a granted reboot. It ends once its engine
// requires nothing or cannot be queried.
func TestOrigin_Again(t *testing.T) {
	const plain, again = "Staged. Reported by update-engine (asks).", "Staged. Reported by update-engine (asks again after the reboot)."
	asks := protocol.EngineRecord{Name: "update-engine", Asks: true}
	quiet := protocol.EngineRecord{Name: "update-engine"}
	asksAgain := protocol.EngineRecord{Name: "update-engine", Asks: true, Again: true}
	cases := map[string]struct {
		o    Observation
		want string
	}{
		"the first report after the reboot":            {makeObservation(rebootedBefore, staged(""), reportedBefore(otherBoot, asks)), again},
		"a later report after the reboot":              {makeObservation(rebootedBefore, staged(""), reportedBefore(boot, asksAgain)), again},
		"a need in the next attempt":                   {makeObservation(beingDrained, staged(""), reportedBefore(boot, asksAgain)), again},
		"a need that was absent earlier in this boot":  {makeObservation(rebootedBefore, staged(""), reportedBefore(boot, quiet)), plain},
		"a need that came back after it was absent":    {makeObservation(rebootedBefore, staged(""), reportedBefore(boot, asks)), plain},
		"a need that did not exist before the reboot":  {makeObservation(rebootedBefore, staged(""), reportedBefore(otherBoot, quiet)), plain},
		"a need of another engine":                     {makeObservation(rebootedBefore, staged(""), reportedBefore(otherBoot, protocol.EngineRecord{Name: "sentinel", Asks: true})), plain},
		"a need that came after the boot of the grant": {makeObservation(rebootedBefore, staged(""), reportedBefore("boot-1b", asks)), plain},
		"an attempt of this boot":                      {makeObservation(beingDrained, staged(""), reportedBefore(boot, asks)), plain},
		"a reboot by somebody else":                    {makeObservation(staged(""), reportedBefore(otherBoot, asks)), plain},
		"the need before the reboot is unknown":        {makeObservation(rebootedBefore, staged("")), plain},
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

// TestOrigin_Version shows that a version which could be mistaken for other parts of the sentence
// is only in the record.
func TestOrigin_Version(t *testing.T) {
	if got, want := need(makeObservation(staged("1), b (asks"))).Message, "Staged. Reported by update-engine (asks)."; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

// FuzzOrigin shows that the next process reads the report of each engine as this one wrote it, for
// any text of engines and administrators.
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
