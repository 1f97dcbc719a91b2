package step

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// asked is the manager's request in these tests.
var asked = protocol.Preflight{Policy: "workers", Revision: "r1"}

func isAsked(o *Observation) { o.Asked = &asked }

// sees sets the result of a check of the pods some time ago.
func sees(ago time.Duration, l Look) func(*Observation) {
	return func(o *Observation) {
		l.At = now.Add(-ago)
		o.Look = l
	}
}

// hasAnswered sets the agent's previous answer.
func hasAnswered(l Look) func(*Observation) {
	return func(o *Observation) {
		o.Reported.Preflight = l.Report(asked, boot)
	}
}

func namedPod(name string) *protocol.NamedPods {
	return &protocol.NamedPods{Count: 1, Pods: []protocol.NamedPod{{Pod: "default/" + name, Why: "why"}}}
}

// triesClosed makes the entry in the ledger one for a try.
func triesClosed(o *Observation) { o.Entry.Try = true }

// failedTry is a node whose last attempt was a try that failed.
func failedTry(o *Observation) {
	inPhase(1, abortedPhase)(o)
	o.Record.Progress.Try, o.Record.Progress.Reason = true, v1alpha1.ReasonUndrainablePod
}

var (
	migration = Look{Gated: true, Blocking: namedPod("migrate-1")}
	nothing   = Look{Gated: true}
	protected = Look{Guarded: namedPod("db-0")}
	closed    = Look{Closed: namedPod("db-0")}
	lost      = Look{Gated: true, Problem: "listing pods: forbidden"}
)

// TestWantsLook shows that the agent checks pods for the manager while the node requires a reboot
// that has not begun.
func TestWantsLook(t *testing.T) {
	cases[*protocol.Preflight]{
		"a reboot is needed":        {makeObservation(staged("1"), isAsked), &asked},
		"without a request":         {makeObservation(staged("1")), nil},
		"no reboot is needed":       {makeObservation(isAsked), nil},
		"the reboot has begun":      {makeObservation(staged("1"), isAsked, beingDrained), nil},
		"no engine is received yet": {makeObservation(staged("1"), isAsked, func(o *Observation) { o.Engines = nil }), nil},
	}.each(t, wantsLook)
}

// TestNodeStatusOf_Preflight shows when and how the agent answers the request about pods.
func TestNodeStatusOf_Preflight(t *testing.T) {
	const (
		head     = `{"policy":"workers","revision":"r1","bootID":"boot-2"`
		blocking = head + `,"blocking":{"count":1,"pods":[{"pod":"default/migrate-1","why":"why"}]}}`
		guarded  = head + `,"guarded":{"count":1,"pods":[{"pod":"default/db-0","why":"why"}]}}`
	)
	asksAfter := func(failed int64) func(*Observation) {
		return func(o *Observation) {
			o.Asked = &protocol.Preflight{Policy: asked.Policy, Revision: asked.Revision, Failed: failed}
		}
	}
	cases := map[string]struct {
		o     Observation
		want  string // "-" removes the answer, and "" keeps it
		again time.Duration
	}{
		"without a request":                                    {makeObservation(staged("1"), sees(0, migration)), "-", lookEvery},
		"no reboot is needed any more":                         {makeObservation(isAsked, sees(0, migration)), "-", 0},
		"before the first look":                                {makeObservation(staged("1"), isAsked), "", lookEvery},
		"the first answer to a gate":                           {makeObservation(staged("1"), isAsked, sees(0, migration)), blocking, lookEvery},
		"a gate gets an answer without pods, too":              {makeObservation(staged("1"), isAsked, sees(0, nothing)), head + "}", lookEvery},
		"a gate gets a problem":                                {makeObservation(staged("1"), isAsked, sees(0, lost)), head + `,"problem":"listing pods: forbidden"}`, lookEvery},
		"without a gate an answer without pods is not written": {makeObservation(staged("1"), isAsked, sees(0, Look{})), "-", lookEvery},
		"after a failed try an answer without pods is written": {
			makeObservation(staged("1"), isAsked, hasAnswered(closed), failedTry, sees(5*time.Second, Look{})), head + "}", lookEvery,
		},
		"after a drain that budgets held up an answer without pods is written": {
			makeObservation(staged("1"), asksAfter(7), hasAnswered(protected), sees(5*time.Second, Look{})), head + `,"failed":7}`, lookEvery,
		},
		"after a drain that budgets held up the pods are written that a budget refuses now": {
			makeObservation(staged("1"), asksAfter(7), sees(5*time.Second, Look{Refused: namedPod("db-0")})),
			head + `,"failed":7,"refused":{"count":1,"pods":[{"pod":"default/db-0","why":"why"}]}}`, lookEvery,
		},
		"without a gate a problem has to last":            {makeObservation(staged("1"), isAsked, sees(time.Second, Look{Problem: "x"})), "", 4 * time.Second},
		"without a gate a problem that lasts is reported": {makeObservation(staged("1"), isAsked, sees(5*time.Second, Look{Problem: "x"})), head + `,"problem":"x"}`, lookEvery},
		"a problem is reported at once if a drain would begin": {
			makeObservation(staged("1"), isAsked, granted(1, protocol.GrantActive), sees(0, Look{Problem: "x"}), startsWith(Look{Problem: "x"})), head + `,"problem":"x"}`, lookEvery,
		},
		"a problem that occurs once does not count if a drain would begin": {
			makeObservation(staged("1"), isAsked, granted(1, protocol.GrantActive), sees(time.Hour, Look{}), startsWith(Look{Problem: "x"})), "-", lookEvery,
		},
		"a problem does not count before the look in the background has begun again": {
			makeObservation(staged("1"), isAsked, granted(1, protocol.GrantActive), startsWith(Look{Problem: "x"})), "", lookEvery,
		},
		"pods that cannot be drained have to last":          {makeObservation(staged("1"), isAsked, sees(time.Second, protected)), "", 4 * time.Second},
		"pods that cannot be drained and last are reported": {makeObservation(staged("1"), isAsked, sees(5*time.Second, protected)), guarded, lookEvery},
		"another answer has to last":                        {makeObservation(staged("1"), isAsked, hasAnswered(migration), sees(time.Second, nothing)), "", 4 * time.Second},
		"the first answer to another request is reported at once": {
			makeObservation(staged("1"), hasAnswered(migration), func(o *Observation) {
				o.Asked = &protocol.Preflight{Policy: "workers", Revision: "r2"}
			}, sees(0, nothing)), `{"policy":"workers","revision":"r2","bootID":"boot-2"}`, lookEvery,
		},
		"the first answer in another boot is reported at once": {
			makeObservation(staged("1"), isAsked, hasAnswered(migration), func(o *Observation) { o.Reported.Preflight.BootID = otherBoot }, sees(0, nothing)), head + "}", lookEvery,
		},
		"pods found before a drain would begin are reported at once": {
			makeObservation(staged("1"), isAsked, hasAnswered(nothing), sees(time.Hour, nothing), granted(1, protocol.GrantActive), startsWith(migration)), blocking, lookEvery,
		},
		"pods found before do not count for the next grant": {
			makeObservation(staged("1"), isAsked, granted(1, protocol.GrantCancelled), sees(time.Hour, nothing), startsWith(migration)), head + "}", lookEvery,
		},
		"the answer stays while the drain runs":              {makeObservation(staged("1"), isAsked, beingDrained, sees(0, nothing)), "", 0},
		"the answer stays while the host goes down":          {makeObservation(staged("1"), isAsked, goingDown, sees(0, nothing)), "", 0},
		"the first report after the boot removes the answer": {makeObservation(isAsked, rebootedBefore, sees(0, nothing)), "-", 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := NodeStatusOf(tc.o)
			value, known, _ := preflightReport(tc.o)
			got := ""
			switch {
			case known && value == nil:
				got = "-"
			case known:
				got = strings.TrimSuffix(strings.TrimPrefix(protocol.AgentReport{Preflight: value}.String(), `{"preflight":`), "}")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again := r.Again.Sub(now); !r.Again.IsZero() && again != tc.again || r.Again.IsZero() && tc.again != 0 {
				t.Errorf("again in %s, want %s", again, tc.again)
			}
		})
	}
}

// startsWith sets the result of the agent's own check before it begins.
func startsWith(l Look) func(*Observation) {
	return func(o *Observation) {
		l.At = now
		o.StartLook = l
	}
}

// TestNext_StartLook shows that the agent's own check decides whether it begins.
func TestNext_StartLook(t *testing.T) {
	anyway := func(o *Observation) { o.Policy.Drain.OnTimeout = v1alpha1.DrainTimeoutReboot }
	waits := Wait{Until: now.Add(LookRetry)}
	begins := func(try bool) Step { return StartDrain{protocol.Progress{Try: try}} }
	cases := map[string]struct {
		change func(*Observation)
		want   Step
	}{
		"nothing is in the way":        {startsWith(nothing), StartDrain{}},
		"a pod blocks":                 {startsWith(migration), waits},
		"a problem":                    {startsWith(lost), waits},
		"the policy keeps a pod":       {startsWith(Look{Kept: namedPod("bare")}), waits},
		"no eviction can remove a pod": {startsWith(protected), waits},
		"a pod that cannot be evicted, with onTimeout Reboot": {func(o *Observation) { anyway(o); startsWith(protected)(o) }, StartDrain{}},
		"the policy keeps a pod, with onTimeout Reboot": {
			func(o *Observation) { anyway(o); startsWith(Look{Kept: namedPod("bare")})(o) }, waits,
		},
		"a budget is closed, and it is not reported yet":   {startsWith(closed), waits},
		"a budget is closed, and the manager grants a try": {func(o *Observation) { triesClosed(o); startsWith(closed)(o) }, begins(true)},
		"a budget is closed, and the policy does not try any more": {
			func(o *Observation) {
				triesClosed(o)
				o.Policy.Drain.ClosedBudgets = v1alpha1.ClosedBudgetsWait
				startsWith(closed)(o)
			}, waits,
		},
		"a try is granted, and the budget has opened": {func(o *Observation) { triesClosed(o); startsWith(nothing)(o) }, begins(false)},
		"a try is granted, and no cordon can help": {
			func(o *Observation) {
				triesClosed(o)
				startsWith(Look{Closed: closed.Closed, Guarded: protected.Guarded})(o)
			}, waits,
		},
		"a budget is closed, with onTimeout Reboot": {func(o *Observation) { anyway(o); startsWith(closed)(o) }, begins(false)},
		"before a look": {func(o *Observation) { o.StartLook = Look{} }, Wait{Until: now.Add(policyRetry)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := Next(makeObservation(staged("1"), granted(1, protocol.GrantActive), tc.change))
			if start, ok := got.(StartDrain); ok {
				start.Progress = protocol.Progress{Try: start.Progress.Try}
				got = start
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
