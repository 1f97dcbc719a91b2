package step

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const deadlock corev1.NodeConditionType = "KernelDeadlock"

// asksAfter makes KernelDeadlock ask for a reboot once it has had a status for ten minutes.
func asksAfter(status corev1.ConditionStatus) func(*Observation) {
	return func(o *Observation) {
		o.NodeConditions = []v1alpha1.NodeConditionNeed{{Type: deadlock, Status: status, For: v1alpha1.Duration{Duration: 10 * time.Minute}}}
	}
}

// detected adds condition KernelDeadlock, which changed some time ago.
func detected(status corev1.ConditionStatus, ago time.Duration) func(*Observation) {
	return func(o *Observation) {
		o.Conditions = append(o.Conditions, corev1.NodeCondition{Type: deadlock, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-ago))})
	}
}

func upSince(ago time.Duration) func(*Observation) { return func(o *Observation) { o.Uptime = ago } }

// observed returns an observation of a host that has been up for a day, and adds the reports about
// its conditions.
func observed(changes ...func(*Observation)) Observation {
	o := makeObservation(append([]func(*Observation){upSince(24 * time.Hour)}, changes...)...)
	o.Node, o.Engines = "n1", AllReports(o.Engines, o)
	return o
}

func TestNeed_NodeConditions(t *testing.T) {
	yes, no := corev1.ConditionTrue, corev1.ConditionFalse
	rebootedAgo := func(ago time.Duration) func(*Observation) {
		return func(o *Observation) {
			rebootedBefore(o)
			o.Record.Progress.At = metav1.NewTime(now.Add(-ago))
		}
	}
	const asked, ignored, upToDate = "True NodeCondition", "False ConditionIgnored", "False UpToDate"
	cases[string]{
		"True for long enough":                 {observed(asksAfter(yes), detected(yes, 10*time.Minute)), asked},
		"True, which is the default":           {observed(asksAfter(""), detected(yes, time.Hour)), asked},
		"True for too short a time":            {observed(asksAfter(yes), detected(yes, 10*time.Minute-1)), upToDate},
		"False":                                {observed(asksAfter(yes), detected(no, time.Hour)), upToDate},
		"Unknown":                              {observed(asksAfter(yes), detected(corev1.ConditionUnknown, time.Hour)), upToDate},
		"absent":                               {observed(asksAfter(yes)), upToDate},
		"True, which no policy names":          {observed(detected(yes, time.Hour)), upToDate},
		"False for long enough, if False asks": {observed(asksAfter(no), detected(no, time.Hour)), asked},
		"absent, if False asks":                {observed(asksAfter(no)), upToDate},
		"False and True: the worst counts":     {observed(asksAfter(yes), detected(no, time.Hour), detected(yes, time.Hour)), asked},
		"False and True, if False asks: the worst counts": {observed(asksAfter(no), detected(no, time.Hour), detected(yes, time.Hour)), upToDate},
		"True since before the boot":                      {observed(asksAfter(yes), upSince(time.Hour), detected(yes, 2*time.Hour)), ignored},
		"True since the second of the boot":               {observed(asksAfter(yes), upSince(time.Hour), detected(yes, time.Hour)), ignored},
		"True since before the boot by a restarted clock": {observed(asksAfter(yes), upSince(time.Hour), rebootedAgo(20*time.Minute), detected(yes, 30*time.Minute)), ignored},
		"True since after the granted reboot":             {observed(asksAfter(yes), upSince(time.Hour), rebootedAgo(70*time.Minute), detected(yes, 30*time.Minute)), asked},
		"True, and the progress is in the future":         {observed(asksAfter(yes), rebootedAgo(-time.Hour), detected(yes, 30*time.Minute)), asked},
		"True, and the uptime is unknown":                 {observed(asksAfter(yes), upSince(0), detected(yes, time.Hour)), ignored},
		"True from a clock that is slightly ahead":        {observed(asksAfter(yes), detected(yes, -5*time.Minute)), upToDate},
		"True from a clock that is far ahead":             {observed(asksAfter(yes), detected(yes, -time.Hour)), ignored},
		"True without a time":                             {observed(asksAfter(yes), detected(yes, 0), func(o *Observation) { o.Conditions[0].LastTransitionTime = metav1.Time{} }), ignored},
		"True, and an update":                             {observed(asksAfter(yes), detected(yes, time.Hour), staged("1")), "True UpdateStaged"},
		"True since before the boot, and a request":       {observed(asksAfter(yes), upSince(time.Hour), detected(yes, 2*time.Hour), requesting("x")), "True Requested"},
	}.each(t, func(o Observation) string {
		c := need(o)
		return string(c.Status) + " " + c.Reason
	})
}

func TestNeed_NodeConditionMessages(t *testing.T) {
	for want, o := range map[string]Observation{
		"Node condition KernelDeadlock has been True since Sat 2026-11-21 21:00:00 UTC, for longer than 10m0s. " +
			"Reported by update-engine, condition KernelDeadlock (asks).": observed(asksAfter(""), detected(corev1.ConditionTrue, time.Hour)),
		"Nothing is staged. Node condition KernelDeadlock has been True since Sat 2026-11-21 20:00:00 UTC. The reboot since then did not end it, " +
			"so it does not ask again until it changes. Repair the cause, or request a reboot. " +
			"Reported by update-engine, condition KernelDeadlock.": observed(asksAfter(""), upSince(time.Hour), detected(corev1.ConditionTrue, 2*time.Hour)),
		"Nothing is staged. Node condition KernelDeadlock has been True since Sat 2026-11-21 23:00:00 UTC, which is in the future, and does not count. " +
			"Correct the clock of the program that writes it. Reported by update-engine, condition KernelDeadlock.": observed(asksAfter(""), detected(corev1.ConditionTrue, -time.Hour)),
		"Nothing is staged. Node condition KernelDeadlock is True and does not count: it has no valid transition time. Correct the program that writes it. " +
			"Reported by update-engine, condition KernelDeadlock.": observed(asksAfter(""), detected(corev1.ConditionTrue, 0), func(o *Observation) { o.Conditions[0].LastTransitionTime = metav1.Time{} }),
	} {
		if diff := cmp.Diff(want, need(o).Message); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

// A condition begins to ask without any change of the Node, and so does one from a clock ahead.
func TestNodeStatusOf_LooksAgainWhenAConditionAsks(t *testing.T) {
	for name, tc := range map[string]struct {
		ago  time.Duration
		want time.Time
	}{
		"a condition that has just changed":                       {0, now.Add(10 * time.Minute)},
		"a condition from a clock slightly ahead":                 {-time.Minute, now.Add(11 * time.Minute)},
		"a condition from a clock far ahead":                      {-time.Hour, now.Add(55 * time.Minute)},
		"a condition that asks for a reboot: the host is checked": {time.Hour, now.Add(lookEvery)},
		"a condition from before the boot: no later check":        {48 * time.Hour, time.Time{}},
	} {
		if got := NodeStatusOf(observed(asksAfter(""), detected(corev1.ConditionTrue, tc.ago))).Again; !got.Equal(tc.want) {
			t.Errorf("%s: looks again at %s, want %s", name, got, tc.want)
		}
	}
}

// A condition that comes back after each boot, each time with a new transition, gets two reboots, and
// no third. Nothing but the record on the Node is kept between the reports.
func TestNext_AConditionThatKeepsComingBack(t *testing.T) {
	l := &looping{T: t, Observation: makeObservation(asksAfter(""))}
	l.Node = "n1"
	comesBack := func(l *looping) {
		l.Now, l.Uptime = l.Now.Add(3*time.Hour), time.Hour
		l.Conditions = []corev1.NodeCondition{{
			Type: deadlock, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(l.Now.Add(-30 * time.Minute)),
		}}
		hasReports(l)
	}
	for range maxVainReboots {
		comesBack(l)
		rebootsUnseen(l) // which fails if the agent does not begin
		l.Uptime, l.Conditions = time.Minute, nil
		hasReports(l)
		hasReports(l)
	}
	comesBack(l)
	if u, from := updateAsked(l.Observation); u == nil || u.VainReboots != maxVainReboots || from.Engine != "condition KernelDeadlock" {
		t.Errorf("asks for a third reboot: %+v of %s", u, from.Engine)
	}
	boots(l)
	hasReports(l)
	hasReports(l)
	if len(l.Before.Reported) != 1 {
		t.Errorf("after a boot by hand the condition is still recorded: %+v", l.Before.Reported)
	}
}

// hasReports lets the agent report what it sees now.
func hasReports(l *looping) {
	l.Helper()
	l.Engines = AllReports([]engine.Report{engine.UpToDate("update-engine", "Nothing is staged.")}, l.Observation)
	reports(l)
}
