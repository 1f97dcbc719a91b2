package step

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// TestUpdate covers behaviour 27.
func TestUpdate(t *testing.T) {
	system := func(version string) func(*Observation) { return func(o *Observation) { o.OS = &OS{Version: version} } }
	tried := func(version, running string, vain int32) func(*Observation) {
		return func(o *Observation) {
			rebootedBefore(o)
			o.Record.Progress.Update = &protocol.Update{Version: version, Running: running, VainReboots: vain}
		}
	}
	phase := func(p protocol.Phase, bootID string) func(*Observation) {
		return func(o *Observation) { o.Record.Progress.Phase, o.Record.Progress.BootID = p, bootID }
	}
	over := func(version, running string) engine.Report {
		r := stagedReport(version)
		r.Running = running
		return r
	}
	named := func(vain int32) *protocol.Update {
		return &protocol.Update{Version: "2.0", Running: "1.0", VainReboots: vain}
	}
	long, over1 := strings.Repeat("1", 129), &protocol.Update{Running: "1.0"}
	cases[*protocol.Update]{
		"no need":                                      {makeObservation(system("1.0")), nil},
		"no engine has reported":                       {makeObservation(system("1.0"), silent), nil},
		"only an administrator's request":              {makeObservation(system("1.0"), requesting("x")), nil},
		"an engine that does not respond":              {makeObservation(system("1.0"), unreachable), nil},
		"a need without a version":                     {makeObservation(system("1.0"), staged("")), over1},
		"a version that names none":                    {makeObservation(system("1.0"), staged("0.0.0")), over1},
		"a version without end":                        {makeObservation(system("1.0"), staged(long)), over1},
		"a version that JSON would change":             {makeObservation(system("1.0"), staged("2\xff")), over1},
		"a version that was broadcast only":            {makeObservation(system("1.0"), broadcast("2.0")), nil},
		"a host without os-release":                    {makeObservation(staged("2.0")), &protocol.Update{Version: "2.0"}},
		"a rolling release":                            {makeObservation(system(""), staged("2.0")), &protocol.Update{Version: "2.0"}},
		"os-release without end":                       {makeObservation(system(long), staged("2.0")), &protocol.Update{Version: "2.0"}},
		"a new need without a version":                 {makeObservation(tried("", "1.0", 1), system("1.0"), staged("")), over1},
		"the first time":                               {makeObservation(system("1.0"), staged("2.0")), named(0)},
		"the engine reports the running version":       {makeObservation(system("12"), engineReports(over("2.0", "1.0"))), named(0)},
		"a record of an older agent without the field": {makeObservation(system("1.0"), staged("2.0"), rebootedBefore), named(0)},
		"one reboot without effect":                    {makeObservation(tried("2.0", "1.0", 0), system("1.0"), staged("2.0")), named(1)},
		"another reboot without effect":                {makeObservation(tried("2.0", "1.0", 1), system("1.0"), staged("2.0")), named(2)},
		"another reboot without effect, and a request": {makeObservation(tried("2.0", "1.0", 1), system("1.0"), staged("2.0"), requesting("x")), named(0)},
		"a new version":                                {makeObservation(tried("1.9", "1.0", 1), system("1.0"), staged("2.0")), named(0)},
		"an update that took effect":                   {makeObservation(tried("2.0", "0.9", 1), system("1.0"), staged("2.0")), named(0)},
		"a boot that has not ended":                    {makeObservation(tried("2.0", "1.0", 1), phase(rebootingPhase, boot), system("1.0"), staged("2.0")), named(1)},
		"an attempt that was given up":                 {makeObservation(tried("2.0", "1.0", 1), phase(abortedPhase, boot), system("1.0"), staged("2.0")), named(1)},
		"a reboot by somebody else (behaviour 50)":     {makeObservation(tried("2.0", "1.0", 1), phase(abortedPhase, otherBoot), system("1.0"), staged("2.0")), named(1)},
		"a reboot by somebody else during the drain":   {makeObservation(tried("2.0", "1.0", 1), phase(drainingPhase, otherBoot), system("1.0"), staged("2.0")), named(1)},
		"the first of several engines":                 {makeObservation(engineReports(over("2.0", "1.0"), over("3.0", "9"))), named(0)},
		"the first one with versions":                  {makeObservation(engineReports(stagedReport(""), over("2.0", "1.0"), over("3.0", "9"))), named(0)},
		"the engine of several whose update was tried": {
			makeObservation(tried("2.0", "1.0", 0), engineReports(over("3.0", "9"), over("2.0", "1.0"), over("4.0", "8"))), named(1),
		},
	}.each(t, func(o Observation) *protocol.Update {
		update, _ := updateAsked(o)
		return update
	})
}

// looping is a host whose engine requires a version, together with the results of its attempts.
type looping struct {
	*testing.T
	Observation
	seq int64
}

// hasReport sets the report of the engine and lets the agent write it.
func hasReport(r engine.Report) func(*looping) {
	return func(l *looping) {
		engineReports(r)(&l.Observation)
		reports(l)
	}
}

// wants makes the engine require a version.
func wants(version string) func(*looping) { return hasReport(stagedReport(version)) }

// needsNothing ends the need.
func needsNothing(l *looping) { hasReport(makeObservation().Engines[0])(l) }

// reports lets the agent write its status.
func reports(l *looping) {
	l.Conditions, l.Before = []corev1.NodeCondition{need(l.Observation)}, engineRecord(l.Observation)
}

// begins starts an attempt up to its drain. The record is serialized and parsed.
func begins(l *looping) {
	l.Helper()
	l.seq++
	l.shows(makeGrant(l.seq, active, l.BootID))
	start, ok := Next(l.Observation).(StartDrain)
	if !ok {
		l.Fatalf("attempt %d did not begin", l.seq)
	}
	l.Record.Progress = reread(l.T, start.Progress)
}

func reread(t *testing.T, p protocol.Progress) *protocol.Progress {
	t.Helper()
	read, err := protocol.ParseProgress(map[string]string{v1alpha1.AnnotationProgress: p.String()})
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// reboots runs a whole attempt without effect. Afterwards the same system runs as before, the
// administrator's requests are gone, and the first report has the need again.
func reboots(l *looping) {
	l.Helper()
	rebootsUnseen(l)
	reports(l)
}

// rebootsUnseen is like reboots but stops before the first report.
func rebootsUnseen(l *looping) {
	l.Helper()
	begins(l)
	progress, ok := protocol.Commit(l.Record, l.BootID, now)
	if !ok {
		l.Fatalf("attempt %d was not committed", l.seq)
	}
	l.Record.Progress = reread(l.T, progress)
	l.BootID += "+"
	l.Requested = false
}

// returnsAfter is like reboots, but the need returns when the host has been up for some time. The
// agent writes each report.
func returnsAfter(uptime time.Duration) func(*looping) {
	return func(l *looping) {
		l.Helper()
		asks := l.Engines[0]
		rebootsUnseen(l)
		l.Uptime = 30 * time.Second
		needsNothing(l)
		l.Uptime = uptime
		hasReport(asks)(l)
		l.Uptime = 24 * time.Hour // the next attempt comes later
		reports(l)
	}
}

// returnsAfterRequest runs a whole attempt for a request. Minutes later the engine requires a
// reboot.
func returnsAfterRequest(l *looping) {
	l.Helper()
	rebootsUnseen(l)
	l.Uptime = 10 * time.Minute
	needsNothing(l)
	wants("")(l)
}

// boots reboots the host without an attempt.
func boots(l *looping) {
	l.BootID += "+"
	reports(l)
}

// upgrades runs a whole attempt after which another system runs.
func upgrades(to string) func(*looping) {
	return func(l *looping) {
		l.Helper()
		reboots(l)
		runs(to)(l)
	}
}

// runs sets the version that the host runs.
func runs(version string) func(*looping) { return func(l *looping) { l.OS = &OS{Version: version} } }

func givesUp(l *looping) {
	l.Helper()
	begins(l)
	progress, ok := protocol.Abort(l.Record, l.BootID, v1alpha1.ReasonDrainTimedOut, "too long", true, now)
	if !ok {
		l.Fatalf("attempt %d was not given up", l.seq)
	}
	l.Record.Progress = reread(l.T, progress)
}

func requestsReboot(l *looping) {
	requesting("why")(&l.Observation)
	reports(l)
}

// noOSRelease is a host whose version is unknown.
func noOSRelease(l *looping) { l.OS = nil }

// TestRollback shows whether the host would be rebooted again after a story (behaviour 27).
func TestRollback(t *testing.T) {
	cases := map[string]struct {
		story []func(*looping)
		stops bool
	}{
		"one reboot without effect may be bad luck":         {[]func(*looping){wants("2.0"), reboots}, false},
		"two reboots without effect are a loop":             {[]func(*looping){wants("2.0"), reboots, reboots}, true},
		"an attempt that is given up does not count":        {[]func(*looping){wants("2.0"), reboots, givesUp}, false},
		"attempts that are given up do not hide a loop":     {[]func(*looping){wants("2.0"), reboots, givesUp, givesUp, reboots}, true},
		"reboots by hand do not hide a loop (behaviour 50)": {[]func(*looping){wants("2.0"), reboots, boots, reboots, boots}, true},
		"a reboot by hand does not count":                   {[]func(*looping){wants("2.0"), reboots, boots, boots}, false},
		"a new version starts afresh":                       {[]func(*looping){wants("2.0"), reboots, reboots, wants("2.1")}, false},
		"a new version may loop as well":                    {[]func(*looping){wants("2.0"), reboots, reboots, wants("2.1"), reboots, reboots}, true},
		"an administrator's request starts afresh":          {[]func(*looping){wants("2.0"), reboots, reboots, requestsReboot}, false},
		"a request allows one more reboot":                  {[]func(*looping){wants("2.0"), reboots, reboots, requestsReboot, reboots}, false},
		"two reboots after a request are a loop":            {[]func(*looping){wants("2.0"), reboots, reboots, requestsReboot, reboots, reboots}, true},
		"an update that is applied at last":                 {[]func(*looping){wants("2.0"), reboots, upgrades("2.0")}, false},
		"updates that are applied, one by one":              {[]func(*looping){wants("2.0"), upgrades("2.0"), wants("2.1"), upgrades("2.1"), wants("2.2"), upgrades("2.2")}, false},
		"an update that rolls back after a while":           {[]func(*looping){wants("2.0"), upgrades("2.0"), boots, runs("1.0")}, false},
		"an update that rolls back after a while, twice":    {[]func(*looping){wants("2.0"), upgrades("2.0"), boots, runs("1.0"), upgrades("2.0"), boots, runs("1.0")}, true},

		"a need without a version may survive once":                                      {[]func(*looping){wants(""), reboots}, false},
		"a need without a version that is there again, after two reboots (behaviour 27)": {[]func(*looping){wants(""), reboots, reboots}, true},
		"a need without a version, before the first report after the second reboot":      {[]func(*looping){wants(""), reboots, rebootsUnseen}, true},
		"a need without a version, and the running version is unknown":                   {[]func(*looping){noOSRelease, wants(""), reboots, reboots}, true},
		"a need with a version, and the running version is unknown":                      {[]func(*looping){noOSRelease, wants("2.0"), reboots, reboots}, true},
		"a new version, and the running version is unknown":                              {[]func(*looping){noOSRelease, wants("2.0"), reboots, reboots, wants("2.1")}, false},
		"a need without a version: reboots by hand do not count":                         {[]func(*looping){wants(""), reboots, boots, boots}, false},
		"a need without a version: reboots by hand do not hide a loop":                   {[]func(*looping){wants(""), reboots, boots, reboots, boots}, true},
		"a need without a version: an attempt that is given up does not hide a loop":     {[]func(*looping){wants(""), reboots, givesUp, reboots}, true},
		"a need that comes back within minutes may be bad luck":                          {[]func(*looping){wants(""), returnsAfter(10 * time.Minute)}, false},
		"a need that comes back within minutes, twice":                                   {[]func(*looping){wants(""), returnsAfter(10 * time.Minute), returnsAfter(10 * time.Minute)}, true},
		"a need that comes back within hours, twice":                                     {[]func(*looping){wants(""), returnsAfter(time.Hour), returnsAfter(returnsWithin)}, true},
		"a need that stays, and then comes back within hours":                            {[]func(*looping){wants(""), reboots, returnsAfter(time.Hour)}, true},
		"a need that comes back later is a new need":                                     {[]func(*looping){wants(""), returnsAfter(5 * time.Hour), returnsAfter(5 * time.Hour), returnsAfter(5 * time.Hour)}, false},
		"a need that comes back later starts the count again":                            {[]func(*looping){wants(""), reboots, returnsAfter(5 * time.Hour), reboots}, false},
		"a need that comes back after reboots for another reason":                        {[]func(*looping){requestsReboot, returnsAfterRequest, requestsReboot, returnsAfterRequest}, false},
		"a need that comes back within minutes of boots by somebody else":                {[]func(*looping){wants(""), needsNothing, boots, wants(""), needsNothing, boots, wants("")}, false},
		"a need that was gone in between":                                                {[]func(*looping){wants(""), reboots, reboots, needsNothing, wants("")}, false},
		"a need that was gone in between, with boots by somebody else":                   {[]func(*looping){wants(""), reboots, needsNothing, wants(""), boots, reboots, needsNothing, wants(""), boots}, false},
		"a need without a version: a request starts afresh":                              {[]func(*looping){wants(""), reboots, reboots, requestsReboot}, false},
		"a need without a version: a request allows one more reboot":                     {[]func(*looping){wants(""), reboots, reboots, requestsReboot, reboots}, false},
		"a need without a version: two reboots after a request are a loop":               {[]func(*looping){wants(""), reboots, reboots, requestsReboot, reboots, reboots}, true},
		"requests alone are never a loop":                                                {[]func(*looping){requestsReboot, reboots, requestsReboot, reboots, requestsReboot, reboots, requestsReboot}, false},
		"a need that was rebooted together with a request is not a loop":                 {[]func(*looping){requestsReboot, reboots, wants(""), reboots}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			l := &looping{T: t, Observation: makeObservation(func(o *Observation) { o.OS = &OS{Version: "1.0"} })}
			for _, happens := range tc.story {
				happens(l)
			}
			l.shows(makeGrant(l.seq+1, active, l.BootID))
			_, begins := Next(l.Observation).(StartDrain)
			objects := NodeStatusOf(l.Observation).Annotations[v1alpha1.AnnotationReport] != nil
			if begins == tc.stops || objects != tc.stops {
				t.Errorf("begins: %v, objects: %v, want stops: %v", begins, objects, tc.stops)
			}
		})
	}
}

// rolledBack is a node whose engine requires again what two reboots did not apply.
func rolledBack(o *Observation) {
	rebootedBefore(o)
	staged("2.0")(o)
	o.Node, o.OS = "n1", &OS{Version: "1.0"}
	o.Record.Progress.Update = &protocol.Update{Version: "2.0", Running: "1.0", VainReboots: 1}
}

// survived is a node whose sentinel file has returned after two reboots.
func survived(o *Observation) {
	rolledBack(o)
	engineReports(engine.Report{
		Engine: "sentinel", State: engine.Needed, Reason: v1alpha1.ReasonSentinelPresent, Message: "/run/reboot-required exists on the host.",
	})(o)
	o.Record.Progress.Update.Version = ""
	reportedBefore(otherBoot, protocol.EngineRecord{Name: "sentinel", Asks: true, Again: true})(o)
}

func TestBlockedBy_Rollback(t *testing.T) {
	const report = `{"blockedBy":[{"reason":"UpdateNotApplied","message":"The node was rebooted 2 times for version 2.0 and still runs 1.0: ` +
		`the update does not take effect, or rolls back. Repair it or hold it back; or, to try it again: ` +
		`kubectl annotate node n1 reboot-operator.io/reboot-requested=\"why\""`
	idle := func(o *Observation) { o.Engines = makeObservation().Engines }
	cases[string]{
		"an update that rolls back (behaviour 27)": {makeObservation(rolledBack), report + `}]}`},
		"comes before reasons that a policy may ignore": {
			makeObservation(rolledBack, func(o *Observation) { o.Inhibitors.Message = "Blocked by x." }),
			report + `},{"reason":"Inhibited","message":"Blocked by x."}]}`,
		},
		"a need without a version that is there again, by its engine's message": {
			makeObservation(survived), `{"blockedBy":[{"reason":"UpdateNotApplied","message":"The node was rebooted 2 times for what sentinel reports, ` +
				`and soon after each boot it reports that again: /run/reboot-required exists on the host. Remove what causes it; or, to try it again: ` +
				`kubectl annotate node n1 reboot-operator.io/reboot-requested=\"why\""}]}`,
		},
		"ends with the need":                         {makeObservation(rolledBack, idle), ""},
		"ends with an unnamed need":                  {makeObservation(rolledBack, staged("")), ""},
		"ends with a request":                        {makeObservation(rolledBack, requesting("x")), ""},
		"ends without the need, even with a request": {makeObservation(rolledBack, idle, requesting("x")), ""},
	}.each(t, func(o Observation) string {
		return ptr.Deref(NodeStatusOf(o).Annotations[v1alpha1.AnnotationReport], "")
	})
}

func TestRollback_AnAnsweredRequestDoesNotCountAgain(t *testing.T) {
	o := makeObservation(rolledBack, requesting("x"), with(corev1.NodeMaintenanceInProgress, corev1.ConditionTrue, ""),
		with(v1alpha1.NodeRebootRequired, corev1.ConditionTrue, `An administrator asks for a reboot: "x".`))
	annotations := NodeStatusOf(o).Annotations
	if value, removed := annotations[v1alpha1.AnnotationRebootRequested]; value != nil || !removed {
		t.Error("the request is not removed")
	}
	if annotations[v1alpha1.AnnotationReport] == nil {
		t.Error("the request that is answered still lifts the reason")
	}
}

// The longest record of an update is far below the limit for parsing an annotation.
func TestUpdate_Size(t *testing.T) {
	worst := strings.Repeat("<", maxNameBytes)
	o := makeObservation(beingDrained, engineReports(engine.Report{State: engine.Needed, Version: worst, Running: worst}))
	p := *o.Record.Progress
	p.Update, _ = updateAsked(o)
	p.Message, p.BootID = strings.Repeat("<", engine.MaxMessageBytes), strings.Repeat("b", 64)
	if p.Update == nil || len(p.String()) > 4096 {
		t.Errorf("%d bytes: %s", len(p.String()), p)
	}
}
