package protocol_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var noon = metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))

// parsed holds values of an annotation, and the record or the error that each should give.
type parsed[T any] map[string]struct {
	value   string
	want    *T
	wantErr string
}

func (cases parsed[T]) each(t *testing.T, annotation string, parse func(map[string]string) (*T, error)) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parse(map[string]string{annotation: tc.value})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			message := ""
			if err != nil {
				message = strings.TrimPrefix(err.Error(), "annotation "+annotation+": ")
			}
			if diff := cmp.Diff(tc.wantErr, message); diff != "" || message != "" && message == err.Error() {
				t.Errorf("%v (-want,+got):\n%s", err, diff)
			}
		})
	}
}

func TestParseGrant(t *testing.T) {
	parsed[protocol.Grant]{
		"a reason that no status accepts": {
			`{"policy":"workers","seq":7,"bootID":"b1","state":"Active","need":"` + strings.Repeat("x", 65) + `"}`,
			nil, "the reason must be letters and digits, such as Inhibited",
		},
		"a boot ID that no ledger accepts": {`{"policy":"workers","seq":7,"bootID":"` + strings.Repeat("b", 65) + `","state":"Active"}`, nil, "bootID has more than 64 bytes"},
		"a time that no status accepts: its year in UTC has five digits": {
			`{"policy":"workers","seq":7,"bootID":"b1","state":"Finished","at":"9999-12-31T23:59:59-12:00"}`,
			nil, "a time is before the year 2000 or beyond the year 9999",
		},
		"a time of a clock that was never set": {
			`{"policy":"workers","seq":7,"bootID":"b1","state":"Active","at":"1999-12-31T23:59:59Z"}`,
			nil, "a time is before the year 2000 or beyond the year 9999",
		},
		"a grant without a time permits nothing, because no ledger would accept it": {`{"policy":"workers","seq":7,"bootID":"b1","state":"Active"}`, nil, "at must be set"},
		"a time that is null": {`{"policy":"workers","seq":7,"bootID":"b1","state":"Active","at":null}`, nil, "at must be set"},
		"an impossible name of a policy": {
			`{"policy":"` + strings.Repeat("w", 64) + `","seq":7,"bootID":"b1","state":"Active","at":"2026-11-21T12:00:00Z"}`,
			nil, "the name of the policy has more than 63 bytes",
		},
		"an active grant": {
			`{"policy":"workers","seq":7,"bootID":"b1","state":"Active","at":"2026-11-21T12:00:00Z"}`,
			&protocol.Grant{Policy: "workers", Seq: 7, BootID: "b1", State: protocol.GrantActive, At: noon}, "",
		},
		"a field of a later release is ignored": {
			`{"policy":"workers","seq":7,"bootID":"b1","state":"Finished","at":"2026-11-21T12:00:00Z","later":[1]}`,
			&protocol.Grant{Policy: "workers", Seq: 7, BootID: "b1", State: protocol.GrantFinished, At: noon}, "",
		},
		"an empty value permits nothing": {``, nil, "unexpected end of JSON input"},
		"null permits nothing":           {`null`, nil, "null is not a record"},
		"a list permits nothing":         {`[]`, nil, "json: cannot unmarshal array into Go value of type protocol.Grant"},
		"text after the record permits nothing": {
			`{"policy":"workers","seq":7,"bootID":"b1","state":"Active","at":"2026-11-21T12:00:00Z"} {}`,
			nil, "invalid character '{' after top-level value",
		},
		"a sequence number as text permits nothing": {
			`{"policy":"workers","seq":"7","bootID":"b1","state":"Active"}`,
			nil, "json: cannot unmarshal string into Go struct field Grant.seq of type int64",
		},
		"an unknown state permits nothing":                  {`{"policy":"workers","seq":7,"bootID":"b1","state":"active"}`, nil, `unknown state "active"`},
		"a grant without a boot permits nothing":            {`{"policy":"workers","seq":7,"state":"Active"}`, nil, "seq, bootID and policy must be set"},
		"a grant without a sequence number permits nothing": {`{"policy":"workers","bootID":"b1","state":"Active"}`, nil, "seq, bootID and policy must be set"},
		"a grant without a policy permits nothing":          {`{"seq":7,"bootID":"b1","state":"Active"}`, nil, "seq, bootID and policy must be set"},
		"a negative sequence number permits nothing":        {`{"policy":"workers","seq":-1,"bootID":"b1","state":"Active"}`, nil, "seq, bootID and policy must be set"},
		"a huge value is not even parsed":                   {strings.Repeat("[", 40000), nil, "40000 bytes are too many"},
	}.each(t, v1alpha1.AnnotationGrant, protocol.ParseGrant)
}

func TestParseProgress(t *testing.T) {
	parsed[protocol.Progress]{
		"a drain": {
			`{"seq":7,"phase":"Draining","bootID":"b1","cordoned":true,"at":"2026-11-21T12:00:00Z"}`,
			&protocol.Progress{Seq: 7, Phase: protocol.PhaseDraining, BootID: "b1", Cordoned: true, At: noon}, "",
		},
		"an abort with all its fields": {
			value: `{"seq":7,"phase":"Aborted","bootID":"b1","cordoned":false,"reason":"DrainTimedOut","message":"pod db-0 is left",` +
				`"at":"2026-11-21T12:00:00Z","failures":2,"drainStartedAt":"2026-11-21T12:00:00Z"}`,
			want: &protocol.Progress{
				Seq: 7, Phase: protocol.PhaseAborted, BootID: "b1", Reason: v1alpha1.ReasonDrainTimedOut,
				Message: "pod db-0 is left", At: noon, Failures: 2, DrainStartedAt: &noon,
			},
		},
		"pods that were forced": {
			`{"seq":7,"phase":"Rebooting","bootID":"b1","at":"2026-11-21T12:00:00Z","podsForced":2147483647}`,
			&protocol.Progress{Seq: 7, Phase: protocol.PhaseRebooting, BootID: "b1", At: noon, PodsForced: math.MaxInt32}, "",
		},
		"a negative number of pods":     {`{"seq":7,"phase":"Rebooting","bootID":"b1","podsForced":-1}`, nil, "failures, podsForced and vainReboots must not be negative"},
		"a negative number of failures": {`{"seq":7,"phase":"Aborted","bootID":"b1","failures":-1}`, nil, "failures, podsForced and vainReboots must not be negative"},
		"more pods than an integer holds": {
			`{"seq":7,"phase":"Rebooting","bootID":"b1","podsForced":2147483648}`,
			nil, "json: cannot unmarshal number 2147483648 into Go struct field Progress.podsForced of type int32",
		},
		"half a pod":         {`{"seq":7,"phase":"Rebooting","bootID":"b1","podsForced":0.5}`, nil, "json: cannot unmarshal number 0.5 into Go struct field Progress.podsForced of type int32"},
		"an unknown phase":   {`{"seq":7,"phase":"Rebooted","bootID":"b1"}`, nil, `unknown phase "Rebooted"`},
		"no sequence number": {`{"phase":"Draining","bootID":"b1"}`, nil, "seq and bootID must be set"},
		"no boot":            {`{"seq":7,"phase":"Draining"}`, nil, "seq and bootID must be set"},
		"a reason that no status accepts": {
			`{"seq":7,"phase":"Aborted","bootID":"b1","reason":"` + strings.Repeat("x", 65) + `"}`,
			nil, "the reason must be letters and digits, such as Inhibited",
		},
		"a boot ID that no ledger accepts": {`{"seq":7,"phase":"Draining","bootID":"` + strings.Repeat("b", 65) + `"}`, nil, "bootID has more than 64 bytes"},
		"a time that no status accepts: its year in UTC has five digits": {
			`{"seq":7,"phase":"Draining","bootID":"b1","at":"9999-12-31T23:59:59-12:00"}`,
			nil, "a time is before the year 2000 or beyond the year 9999",
		},
		"a time that no status accepts: its year in UTC is below 0": {
			`{"seq":7,"phase":"Draining","bootID":"b1","at":"2026-11-21T12:00:00Z","drainStartedAt":"0000-01-01T00:00:00+12:00"}`,
			nil, "a time is before the year 2000 or beyond the year 9999",
		},
		"no time":       {`{"seq":7,"phase":"Draining","bootID":"b1"}`, nil, "at must be set"},
		"half a record": {`{"seq":7,"phase":"Dr`, nil, "unexpected end of JSON input"},
		"a text instead of a time": {
			`{"seq":7,"phase":"Draining","bootID":"b1","at":"yesterday"}`,
			nil, `parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`,
		},
	}.each(t, v1alpha1.AnnotationProgress, protocol.ParseProgress)
}

func TestParseHookPhase(t *testing.T) {
	parsed[protocol.HookPhase]{
		"before the drain": {
			value: `{"policy":"workers","seq":7,"bootID":"b1","stage":"Before","hooks":["example.com/a"],"at":"2026-11-21T12:00:00Z"}`,
			want: &protocol.HookPhase{
				Policy: "workers", Seq: 7, BootID: "b1", Stage: v1alpha1.HooksBefore, Hooks: []v1alpha1.AnnotationKey{"example.com/a"}, At: noon,
			},
		},
		"no policy": {
			`{"seq":7,"bootID":"b1","stage":"After","at":"2026-11-21T12:00:00Z"}`, nil, "seq, bootID and policy must be set",
		},
		"no boot ID": {
			`{"policy":"workers","seq":7,"stage":"After","at":"2026-11-21T12:00:00Z"}`, nil, "seq, bootID and policy must be set",
		},
		"the maximum number of the longest keys": {
			longest().String(), longest(), "",
		},
		"an unknown stage": {
			`{"seq":7,"stage":"before"}`, nil, `unknown stage "before"`,
		},
		"no time": {
			`{"policy":"workers","seq":7,"bootID":"b1","stage":"Before"}`, nil, "at must be set",
		},
		"not even JSON": {
			`true`, nil, "json: cannot unmarshal bool into Go value of type protocol.HookPhase",
		},
	}.each(t, v1alpha1.AnnotationHooks, protocol.ParseHookPhase)
}

// longest is the longest possible phase.
func longest() *protocol.HookPhase {
	h := &protocol.HookPhase{Policy: strings.Repeat("p", 253), Seq: 1 << 62, BootID: strings.Repeat("b", 64), Stage: v1alpha1.HooksBefore, At: noon}
	for i := range 20 {
		h.Hooks = append(h.Hooks, v1alpha1.AnnotationKey(fmt.Sprintf("%02d%s/%s", i, strings.Repeat("d", 251), strings.Repeat("k", 63))))
	}
	return h
}

// A Node without annotations has an empty record (behaviour 54).
func TestParse_NoAnnotations(t *testing.T) {
	for name, annotations := range map[string]map[string]string{"no map": nil, "others only": {"example.com/a": "b"}} {
		t.Run(name, func(t *testing.T) {
			grant, grantErr := protocol.ParseGrant(annotations)
			progress, progressErr := protocol.ParseProgress(annotations)
			report, reportErr := protocol.ParseAgentReport(annotations)
			hooks, hooksErr := protocol.ParseHookPhase(annotations)
			if grant != nil || progress != nil || report.String() != "" || hooks != nil {
				t.Errorf("got %v, %v, %v, %v; want no record", grant, progress, report, hooks)
			}
			if err := errors.Join(grantErr, progressErr, reportErr, hooksErr); err != nil {
				t.Errorf("got %v; want no error", err)
			}
		})
	}
}

func FuzzParseGrant(f *testing.F) {
	f.Add(protocol.Grant{Policy: "workers", Seq: 7, BootID: "b1", State: protocol.GrantActive, At: noon}.String())
	f.Add(`null`)
	f.Add(`{"seq":1,"state":"Active","bootID":"<","policy":"\ud800"}`)
	f.Fuzz(func(t *testing.T, value string) {
		checkRoundTrip(t, v1alpha1.AnnotationGrant, protocol.ParseGrant, value)
	})
}

func FuzzParseProgress(f *testing.F) {
	f.Add(protocol.Progress{Seq: 7, Phase: protocol.PhaseDraining, BootID: "b1", At: noon, DrainStartedAt: &noon}.String())
	f.Add(`[]`)
	f.Add(`{"seq":9223372036854775807,"phase":"Aborted","bootID":"b","failures":-1}`)
	f.Fuzz(func(t *testing.T, value string) {
		checkRoundTrip(t, v1alpha1.AnnotationProgress, protocol.ParseProgress, value)
	})
}

func FuzzParseHookPhase(f *testing.F) {
	f.Add(longest().String())
	f.Add(`{"stage":"After","hooks":[null]}`)
	f.Add(`{"seq":7,"stage":"Before","hooks":["\ud800"],"at":"0000-01-01T00:00:00Z"}`)
	f.Fuzz(func(t *testing.T, value string) {
		checkRoundTrip(t, v1alpha1.AnnotationHooks, protocol.ParseHookPhase, value)
	})
}

// checkRoundTrip fails the test unless the value is an error, or a record that reads the same after
// it is written again. It ignores records that escaping makes too long to be read back.
func checkRoundTrip[T any, P interface {
	*T
	fmt.Stringer
}](t *testing.T, annotation string, parse func(map[string]string) (P, error), value string) {
	t.Helper()
	record, err := parse(map[string]string{annotation: value})
	if (record == nil) == (err == nil) {
		t.Fatalf("got %v and %v: want a record or an error", record, err)
	}
	if err != nil || len(record.String()) > 4096 {
		return
	}
	again, err := parse(map[string]string{annotation: record.String()})
	if err != nil {
		t.Fatalf("%s cannot be read back: %v", record, err)
	}
	if again.String() != record.String() {
		t.Fatalf("%s became %s", record, again)
	}
}
