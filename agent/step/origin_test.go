package step

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// TestBefore: what the condition showed survives a restart of the agent within the boot (behaviours 8 and 13).
func TestBefore(t *testing.T) {
	reported := func(changes ...func(*Observation)) []corev1.NodeCondition {
		return []corev1.NodeCondition{Need(makeObservation(changes...))}
	}
	forged := requesting("Reported in boot " + boot + " by update-engine (asks).")
	asks := engine.Report{Engine: "update-engine", State: engine.Needed, Version: "4593.1.0"}
	latch := engine.Report{Engine: "update-engine", State: engine.Needed, Until: now.Add(24 * time.Hour)}
	known := engine.Report{Engine: "update-engine", State: engine.Unknown}
	unversioned := engine.Report{Engine: "update-engine", State: engine.Needed}
	rpm := engine.Report{Engine: "rpm-ostree", State: engine.Needed, Version: "40.2", Message: "Staged too."}
	both := reported(engineReports(func() engine.Report { r := stagedReport(""); r.Until = now.Add(24 * time.Hour); return r }(), rpm,
		engine.Report{Engine: "sentinel", State: engine.NotNeeded}, engine.Report{Engine: "cos-update-engine", State: engine.Absent}))
	rpm.Message = ""
	says := func(words string) []corev1.NodeCondition {
		return []corev1.NodeCondition{{Type: v1alpha1.NodeRebootRequired, Message: "Reported in boot " + boot + " by update-engine (" + words + ")."}}
	}
	ended := engine.Report{
		Engine: "update-engine", State: engine.Needed, Version: "1", Until: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	cases := map[string]struct {
		conditions   []corev1.NodeCondition
		name, bootID string
		want         engine.Report
	}{
		"no condition":                        {nil, "update-engine", boot, engine.Report{}},
		"a need of this boot":                 {reported(staged("4593.1.0")), "update-engine", boot, asks},
		"a need beside a request":             {reported(staged("4593.1.0"), forged), "update-engine", boot, asks},
		"a need of another boot has fallen":   {reported(staged("4593.1.0")), "update-engine", otherBoot, engine.Report{}},
		"a need of another engine":            {reported(staged("4593.1.0")), "rpm-ostree", boot, engine.Report{}},
		"no need, but it was there":           {reported(), "update-engine", boot, known},
		"gone, but it was there":              {reported(unreachable), "update-engine", boot, known},
		"gone in another boot":                {reported(unreachable), "update-engine", otherBoot, engine.Report{}},
		"an administrator's words are none":   {reported(forged), "update-engine", boot, known},
		"nor are they without any engine":     {reported(engineReports(), forged), "update-engine", boot, engine.Report{}},
		"a latched need":                      {reported(latched("")), "update-engine", boot, latch},
		"an end of days ago":                  {says("asks by broadcast until 2020-01-01T00:00:00Z for version 1"), "update-engine", boot, ended},
		"no end":                              {says("asks by broadcast for version 1"), "update-engine", boot, known},
		"an end that nobody can read":         {says("asks by broadcast until tomorrow"), "update-engine", boot, known},
		"an end before all others":            {says("asks by broadcast until 0001-01-01T00:00:00Z"), "update-engine", boot, known},
		"no version":                          {reported(staged("")), "update-engine", boot, unversioned},
		"a version that ends oddly":           {reported(staged("1.")), "update-engine", boot, engine.Report{Engine: "update-engine", State: engine.Needed, Version: "1."}},
		"a version nobody would choose":       {reported(staged("1), b (asks")), "update-engine", boot, unversioned},
		"each of several: a latched one":      {both, "update-engine", boot, latch},
		"each of several: one with a version": {both, "rpm-ostree", boot, rpm},
		"each of several: one without a need": {both, "sentinel", boot, engine.Report{Engine: "sentinel", State: engine.Unknown}},
		"each of several: an absent one":      {both, "cos-update-engine", boot, engine.Report{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Before(tc.conditions, tc.name, tc.bootID)); diff != "" {
				t.Errorf("before (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOrigin_Again: a need that has outlived a granted reboot, until its engine does not ask or cannot be asked.
func TestOrigin_Again(t *testing.T) {
	const plain, again = "Staged. Reported in boot boot-2 by update-engine (asks).", "Staged. Reported in boot boot-2 by update-engine (asks again after the reboot)."
	reported := func(message string) func(*Observation) {
		return with(v1alpha1.NodeRebootRequired, corev1.ConditionTrue, message)
	}
	cases := map[string]struct {
		o    Observation
		want string
	}{
		"the first report after the reboot":         {makeObservation(rebootedBefore, staged(""), reported("Reported in boot boot-1 by update-engine (asks).")), again},
		"a later one":                               {makeObservation(rebootedBefore, staged(""), reported(again)), again},
		"one in the next attempt":                   {makeObservation(beingDrained, staged(""), reported(again)), again},
		"one that this boot has seen absent":        {makeObservation(rebootedBefore, staged(""), reported("Reported in boot boot-2 by update-engine.")), plain},
		"one that came after that":                  {makeObservation(rebootedBefore, staged(""), reported(plain)), plain},
		"one that was not there before the reboot":  {makeObservation(rebootedBefore, staged(""), reported("Reported in boot boot-1 by update-engine.")), plain},
		"another engine's":                          {makeObservation(rebootedBefore, staged(""), reported("Reported in boot boot-1 by sentinel (asks).")), plain},
		"one that came after the boot of the grant": {makeObservation(rebootedBefore, staged(""), reported("Reported in boot boot-1b by update-engine (asks).")), plain},
		"an attempt of this boot":                   {makeObservation(beingDrained, staged(""), reported(plain)), plain},
		"a reboot by somebody else":                 {makeObservation(staged(""), reported("Reported in boot boot-1 by update-engine (asks).")), plain},
		"a request whose text claims it":            {makeObservation(rebootedBefore, staged(""), reported(requestIntro+`"`+again+`".`)), plain},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Need(tc.o).Message); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzOrigin: whatever an engine and an administrator say, the next process reads of each engine what this one wrote.
func FuzzOrigin(f *testing.F) {
	f.Add("update_engine has installed an update.", "4593.1.0", true, "new firmware")
	f.Add("", "1), sentinel (asks", false, "Reported in boot x by sentinel (asks).")
	f.Fuzz(func(t *testing.T, message, version string, latch bool, why string) {
		if strings.Contains(message, originIntro) || strings.Contains(message, requestIntro) {
			t.Skip("no engine says so")
		}
		report := engine.Report{Engine: "update-engine", State: engine.Needed, Version: version, Message: message}
		if latch {
			report.Until = now
		}
		o := makeObservation(engineReports(report, engine.Report{Engine: "sentinel", State: engine.NotNeeded}), requesting(why))
		conditions := []corev1.NodeCondition{Need(o)}
		got := Before(conditions, "update-engine", boot)
		if got.State != engine.Needed || !got.Until.Equal(report.Until) || got.Version != "" && got.Version != version {
			t.Errorf("read back %+v of %q", got, conditions[0].Message)
		}
		if other := Before(conditions, "sentinel", boot); other.State != engine.Unknown {
			t.Errorf("read back %+v of sentinel in %q", other, conditions[0].Message)
		}
	})
}

func unreachable(o *Observation) {
	engineReports(engine.Report{
		Engine: "update-engine", State: engine.Unknown, Reason: v1alpha1.ReasonEngineUnreachable, Message: "No bus.",
	})(o)
}
