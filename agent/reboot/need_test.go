package reboot

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestNeed(t *testing.T) {
	says := func(state corev1.ConditionStatus, reason v1alpha1.Reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: v1alpha1.NodeRebootRequired, Status: state, Reason: string(reason), Message: message}
	}
	cases := map[string]struct {
		o    Observation
		want corev1.NodeCondition
	}{
		"nothing": {makeObservation(), says(corev1.ConditionFalse, v1alpha1.ReasonUpToDate, "Nothing is staged.")},
		"an update": {
			makeObservation(staged("4593.1.0")),
			says(corev1.ConditionTrue, v1alpha1.ReasonUpdateStaged, "Staged. Heard from update-engine in boot boot-2: version 4593.1.0."),
		},
		"an update that nobody confirms": {
			makeObservation(staged(""), func(o *Observation) { o.Engine.Latched = true }),
			says(corev1.ConditionTrue, v1alpha1.ReasonUpdateStaged, "Staged. Heard from update-engine by broadcast in boot boot-2."),
		},
		"a request": {
			makeObservation(requesting("new firmware")),
			says(corev1.ConditionTrue, v1alpha1.ReasonRequested, `An administrator asks for a reboot: "new firmware".`),
		},
		"a request without words": {
			makeObservation(requesting("")),
			says(corev1.ConditionTrue, v1alpha1.ReasonRequested, `An administrator asks for a reboot: "".`),
		},
		"an update and a request are both told": {
			makeObservation(staged("1"), requesting("new firmware")),
			says(corev1.ConditionTrue, v1alpha1.ReasonUpdateStaged,
				`Staged. Heard from update-engine in boot boot-2: version 1. An administrator asks for a reboot: "new firmware".`),
		},
		"no engine is no need (behaviour 7)": {
			makeObservation(unreachable), says(corev1.ConditionUnknown, v1alpha1.ReasonEngineUnreachable, "No bus."),
		},
		"no engine, and a request": {
			makeObservation(unreachable, requesting("x")),
			says(corev1.ConditionTrue, v1alpha1.ReasonRequested, `An administrator asks for a reboot: "x".`),
		},
		"long words are cut at the end of a character": {
			makeObservation(requesting(strings.Repeat("x", 127) + "ß")),
			says(corev1.ConditionTrue, v1alpha1.ReasonRequested,
				`An administrator asks for a reboot: "`+strings.Repeat("x", 127)+`".`),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, need(tc.o)); diff != "" {
				t.Errorf("need (-want +got):\n%s", diff)
			}
		})
	}
}

// TestFulfilled: behaviour 13.
func TestFulfilled(t *testing.T) {
	told := with(v1alpha1.NodeRebootRequired, corev1.ConditionTrue, `Staged. An administrator asks for a reboot: "new firmware".`)
	up := with(corev1.NodeMaintenanceInProgress, corev1.ConditionTrue, "")
	cases := map[string]struct {
		o    Observation
		want bool
	}{
		"the first report after the boot":             {makeObservation(requesting("new firmware"), rebootedBefore, told, up), true},
		"without a request":                           {makeObservation(rebootedBefore, told, up), false},
		"other words are another request":             {makeObservation(requesting("newer firmware"), rebootedBefore, told, up), false},
		"a later report":                              {makeObservation(requesting("new firmware"), rebootedBefore, told), false},
		"before the boot has ended":                   {makeObservation(requesting("new firmware"), goingDown, told, up), false},
		"a reboot by somebody else is not the answer": {makeObservation(requesting("new firmware"), told, up), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := fulfilled(tc.o); got != tc.want {
				t.Errorf("fulfilled = %v, want %v", got, tc.want)
			}
		})
	}
}

func TestBefore(t *testing.T) {
	needs := func(change func(*engine.Report)) []corev1.NodeCondition {
		o := makeObservation(staged("4593.1.0"), requesting("Heard from update-engine in boot boot-9."))
		change(o.Engine)
		return []corev1.NodeCondition{need(o)}
	}
	as := func(*engine.Report) {}
	report := engine.Report{
		Engine: "update-engine", State: engine.Needed, Reason: v1alpha1.ReasonUpdateStaged, Version: "4593.1.0",
	}
	latched := report
	latched.Latched, latched.Version = true, ""
	unversioned := report
	unversioned.Version = ""
	odd := report
	odd.Version = "1."
	words := []corev1.NodeCondition{need(makeObservation(requesting("Heard from update-engine in boot " + boot + ". Really.")))}
	notNeeded := needs(as)
	notNeeded[0].Status = corev1.ConditionFalse
	cases := map[string]struct {
		conditions   []corev1.NodeCondition
		name, bootID string
		want         engine.Report
	}{
		"no condition":                      {nil, "update-engine", boot, engine.Report{}},
		"a need of this boot":               {needs(as), "update-engine", boot, report},
		"a need of another boot has fallen": {needs(as), "update-engine", otherBoot, engine.Report{}},
		"an administrator's words are none": {needs(as), "update-engine", "boot-9", engine.Report{}},
		"nor on their own":                  {words, "update-engine", boot, engine.Report{}},
		"a need of another engine":          {needs(as), "rpm-ostree", boot, engine.Report{}},
		"no need":                           {notNeeded, "update-engine", boot, engine.Report{}},
		"a latched need":                    {needs(func(r *engine.Report) { r.Latched, r.Version = true, "" }), "update-engine", boot, latched},
		"no version":                        {needs(func(r *engine.Report) { r.Version = "" }), "update-engine", boot, unversioned},
		"a version that ends oddly":         {needs(func(r *engine.Report) { r.Version = "1." }), "update-engine", boot, odd},
		"a version nobody would choose":     {needs(func(r *engine.Report) { r.Version = "1. 2" }), "update-engine", boot, unversioned},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, before(tc.conditions, tc.name, tc.bootID)); diff != "" {
				t.Errorf("before (-want +got):\n%s", diff)
			}
		})
	}
}

func staged(version string) func(*Observation) {
	return func(o *Observation) {
		o.Engine.State, o.Engine.Reason, o.Engine.Version = engine.Needed, v1alpha1.ReasonUpdateStaged, version
		o.Engine.Message = "Staged."
	}
}

func unreachable(o *Observation) {
	o.Engine.State, o.Engine.Reason, o.Engine.Message = engine.Unknown, v1alpha1.ReasonEngineUnreachable, "No bus."
}

func requesting(why string) func(*Observation) {
	return func(o *Observation) { o.Requested, o.RequestedWhy = true, why }
}
