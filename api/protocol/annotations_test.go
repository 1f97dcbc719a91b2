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

func TestParseGrant(t *testing.T) {
	cases := map[string]struct {
		value   string
		want    *protocol.Grant
		wantErr string
	}{
		"a reason that no status would take": {
			value:   `{"policy":"workers","seq":7,"bootID":"b1","state":"Active","need":"` + strings.Repeat("x", 65) + `"}`,
			wantErr: "annotation reboot-operator.io/grant: the reason must be letters and digits, such as Inhibited",
		},
		"a boot ID that no ledger would take": {
			value:   `{"policy":"workers","seq":7,"bootID":"` + strings.Repeat("b", 65) + `","state":"Active"}`,
			wantErr: "annotation reboot-operator.io/grant: bootID has more than 64 bytes",
		},
		"a time that no status would take: in UTC its year has five digits": {
			value:   `{"policy":"workers","seq":7,"bootID":"b1","state":"Finished","at":"9999-12-31T23:59:59-12:00"}`,
			wantErr: "annotation reboot-operator.io/grant: a time is before the year 2000 or beyond the year 9999",
		},
		"a time of a clock that was never set": {
			value:   `{"policy":"workers","seq":7,"bootID":"b1","state":"Active","at":"1999-12-31T23:59:59Z"}`,
			wantErr: "annotation reboot-operator.io/grant: a time is before the year 2000 or beyond the year 9999",
		},
		"a grant of no time is no permission: no ledger would take it": {
			value:   `{"policy":"workers","seq":7,"bootID":"b1","state":"Active"}`,
			wantErr: "annotation reboot-operator.io/grant: at must be set",
		},
		"a time that is null": {
			value:   `{"policy":"workers","seq":7,"bootID":"b1","state":"Active","at":null}`,
			wantErr: "annotation reboot-operator.io/grant: at must be set",
		},
		"a policy with a name that no policy has": {
			value:   `{"policy":"` + strings.Repeat("w", 64) + `","seq":7,"bootID":"b1","state":"Active","at":"2026-11-21T12:00:00Z"}`,
			wantErr: "annotation reboot-operator.io/grant: the name of the policy has more than 63 bytes",
		},
		"an active grant": {
			value: `{"policy":"workers","seq":7,"bootID":"b1","state":"Active","at":"2026-11-21T12:00:00Z"}`,
			want:  &protocol.Grant{Policy: "workers", Seq: 7, BootID: "b1", State: protocol.GrantActive, At: noon},
		},
		"a field of a later release is passed over": {
			value: `{"policy":"workers","seq":7,"bootID":"b1","state":"Finished","at":"2026-11-21T12:00:00Z","later":[1]}`,
			want:  &protocol.Grant{Policy: "workers", Seq: 7, BootID: "b1", State: protocol.GrantFinished, At: noon},
		},
		"an empty value is no permission": {
			value:   ``,
			wantErr: "annotation reboot-operator.io/grant: unexpected end of JSON input",
		},
		"null is no permission": {
			value:   `null`,
			wantErr: "annotation reboot-operator.io/grant: null is no record",
		},
		"a list is no permission": {
			value:   `[]`,
			wantErr: "annotation reboot-operator.io/grant: json: cannot unmarshal array into Go value of type protocol.Grant",
		},
		"text after the record is no permission": {
			value:   `{"policy":"workers","seq":7,"bootID":"b1","state":"Active","at":"2026-11-21T12:00:00Z"} {}`,
			wantErr: "annotation reboot-operator.io/grant: invalid character '{' after top-level value",
		},
		"a sequence number that is text is no permission": {
			value:   `{"policy":"workers","seq":"7","bootID":"b1","state":"Active"}`,
			wantErr: "annotation reboot-operator.io/grant: json: cannot unmarshal string into Go struct field Grant.seq of type int64",
		},
		"a state nobody knows is no permission": {
			value:   `{"policy":"workers","seq":7,"bootID":"b1","state":"active"}`,
			wantErr: `annotation reboot-operator.io/grant: unknown state "active"`,
		},
		"a grant for no boot is no permission": {
			value:   `{"policy":"workers","seq":7,"state":"Active"}`,
			wantErr: "annotation reboot-operator.io/grant: seq, bootID and policy must be set",
		},
		"a grant without a sequence number is no permission": {
			value:   `{"policy":"workers","bootID":"b1","state":"Active"}`,
			wantErr: "annotation reboot-operator.io/grant: seq, bootID and policy must be set",
		},
		"a grant of no policy is no permission": {
			value:   `{"seq":7,"bootID":"b1","state":"Active"}`,
			wantErr: "annotation reboot-operator.io/grant: seq, bootID and policy must be set",
		},
		"a negative sequence number is no permission": {
			value:   `{"policy":"workers","seq":-1,"bootID":"b1","state":"Active"}`,
			wantErr: "annotation reboot-operator.io/grant: seq, bootID and policy must be set",
		},
		"a huge value is not even parsed": {
			value:   strings.Repeat("[", 40000),
			wantErr: "annotation reboot-operator.io/grant: 40000 bytes are too many",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := protocol.ParseGrant(map[string]string{v1alpha1.AnnotationGrant: tc.value})
			compareParsed(t, tc.want, got, tc.wantErr, err)
		})
	}
}

func TestParseProgress(t *testing.T) {
	cases := map[string]struct {
		value   string
		want    *protocol.Progress
		wantErr string
	}{
		"a drain": {
			value: `{"seq":7,"phase":"Draining","bootID":"b1","cordoned":true,"at":"2026-11-21T12:00:00Z"}`,
			want:  &protocol.Progress{Seq: 7, Phase: protocol.PhaseDraining, BootID: "b1", Cordoned: true, At: noon},
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
			value: `{"seq":7,"phase":"Rebooting","bootID":"b1","at":"2026-11-21T12:00:00Z","podsForced":2147483647}`,
			want:  &protocol.Progress{Seq: 7, Phase: protocol.PhaseRebooting, BootID: "b1", At: noon, PodsForced: math.MaxInt32},
		},
		"fewer pods than none": {
			value:   `{"seq":7,"phase":"Rebooting","bootID":"b1","podsForced":-1}`,
			wantErr: "annotation reboot-operator.io/progress: podsForced must not be negative",
		},
		"more pods than a number holds": {
			value: `{"seq":7,"phase":"Rebooting","bootID":"b1","podsForced":2147483648}`,
			wantErr: "annotation reboot-operator.io/progress: json: cannot unmarshal number 2147483648 into Go struct field Progress.podsForced " +
				"of type int32",
		},
		"half a pod": {
			value: `{"seq":7,"phase":"Rebooting","bootID":"b1","podsForced":0.5}`,
			wantErr: "annotation reboot-operator.io/progress: json: cannot unmarshal number 0.5 into Go struct field Progress.podsForced " +
				"of type int32",
		},
		"a phase nobody knows": {
			value:   `{"seq":7,"phase":"Rebooted","bootID":"b1"}`,
			wantErr: `annotation reboot-operator.io/progress: unknown phase "Rebooted"`,
		},
		"no sequence number": {
			value:   `{"phase":"Draining","bootID":"b1"}`,
			wantErr: "annotation reboot-operator.io/progress: seq and bootID must be set",
		},
		"no boot": {
			value:   `{"seq":7,"phase":"Draining"}`,
			wantErr: "annotation reboot-operator.io/progress: seq and bootID must be set",
		},
		"a reason that no status would take": {
			value:   `{"seq":7,"phase":"Aborted","bootID":"b1","reason":"` + strings.Repeat("x", 65) + `"}`,
			wantErr: "annotation reboot-operator.io/progress: the reason must be letters and digits, such as Inhibited",
		},
		"a boot ID that no ledger would take": {
			value:   `{"seq":7,"phase":"Draining","bootID":"` + strings.Repeat("b", 65) + `"}`,
			wantErr: "annotation reboot-operator.io/progress: bootID has more than 64 bytes",
		},
		"a time that no status would take: in UTC its year has five digits": {
			value:   `{"seq":7,"phase":"Draining","bootID":"b1","at":"9999-12-31T23:59:59-12:00"}`,
			wantErr: "annotation reboot-operator.io/progress: a time is before the year 2000 or beyond the year 9999",
		},
		"a time that no status would take: in UTC its year is below 0": {
			value:   `{"seq":7,"phase":"Draining","bootID":"b1","at":"2026-11-21T12:00:00Z","drainStartedAt":"0000-01-01T00:00:00+12:00"}`,
			wantErr: "annotation reboot-operator.io/progress: a time is before the year 2000 or beyond the year 9999",
		},
		"no time": {
			value:   `{"seq":7,"phase":"Draining","bootID":"b1"}`,
			wantErr: "annotation reboot-operator.io/progress: at must be set",
		},
		"half a record": {
			value:   `{"seq":7,"phase":"Dr`,
			wantErr: "annotation reboot-operator.io/progress: unexpected end of JSON input",
		},
		"a time that is none": {
			value:   `{"seq":7,"phase":"Draining","bootID":"b1","at":"yesterday"}`,
			wantErr: `annotation reboot-operator.io/progress: parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := protocol.ParseProgress(map[string]string{v1alpha1.AnnotationProgress: tc.value})
			compareParsed(t, tc.want, got, tc.wantErr, err)
		})
	}
}

func TestParseAgentReport_Objection(t *testing.T) {
	cases := map[string]struct {
		value   string
		want    *protocol.Objection
		wantErr string
	}{
		"an inhibitor": {
			value: `{"objection":{"reason":"Inhibited","message":"apt holds a block inhibitor"}}`,
			want:  &protocol.Objection{Reason: v1alpha1.ReasonInhibited, Message: "apt holds a block inhibitor"},
		},
		"two objections": {
			value: `{"objection":{"reason":"Inhibited","message":"apt","also":[{"reason":"CoordinatorConflict","message":"locksmithd"}]}}`,
			want: &protocol.Objection{Reason: v1alpha1.ReasonInhibited, Message: "apt", Also: []protocol.Objection{
				{Reason: v1alpha1.ReasonCoordinatorConflict, Message: "locksmithd"},
			}},
		},
		"a further one without a reason": {
			value:   `{"objection":{"reason":"Inhibited","also":[{"message":"because"}]}}`,
			wantErr: "annotation reboot-operator.io/report: reason must be set",
		},
		"one within a further one: as deep as a record is long, reading it would take hundreds of megabytes": {
			value:   `{"objection":{"reason":"Inhibited","also":[{"reason":"Inhibited","also":[{"reason":"Inhibited"}]}]}}`,
			wantErr: "annotation reboot-operator.io/report: a further objection has further ones",
		},
		"a reason that no condition would take": {
			value:   `{"objection":{"reason":"Inhibited","also":[{"reason":"not now"}]}}`,
			wantErr: "annotation reboot-operator.io/report: the reason must be letters and digits, such as Inhibited",
		},
		"no reason": {
			value:   `{"objection":{"message":"because"}}`,
			wantErr: "annotation reboot-operator.io/report: reason must be set",
		},
		"not even JSON": {
			value:   `true story`,
			wantErr: "annotation reboot-operator.io/report: invalid character 's' after top-level value",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := protocol.ParseAgentReport(map[string]string{v1alpha1.AnnotationReport: tc.value})
			compareParsed(t, tc.want, got.Objection, tc.wantErr, err)
		})
	}
}

func TestJoinObjections(t *testing.T) {
	long := strings.Repeat("<", 512)
	one, two, three := protocol.Objection{Reason: "A", Message: long}, protocol.Objection{Reason: "B", Message: long}, protocol.Objection{Reason: "C", Message: long}
	for name, tc := range map[string]struct {
		all  []protocol.Objection
		want string
	}{
		"one is written as ever": {[]protocol.Objection{{Reason: "A", Message: "a"}}, `{"objection":{"reason":"A","message":"a"}}`},
		"the first is read by all": {
			[]protocol.Objection{{Reason: "A", Message: "a"}, {Reason: "B", Message: "b"}},
			`{"objection":{"reason":"A","message":"a","also":[{"reason":"B","message":"b"}]}}`,
		},
		"three of the longest are read back": {[]protocol.Objection{one, two, three}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			value := protocol.AgentReport{Objection: protocol.JoinObjections(tc.all)}.String()
			if tc.want != "" && value != tc.want {
				t.Errorf("written as %s, want %s", value, tc.want)
			}
			read, err := protocol.ParseAgentReport(map[string]string{v1alpha1.AnnotationReport: value})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.all, read.Objection.All()); diff != "" {
				t.Errorf("read back (-want +got):\n%s", diff)
			}
		})
	}
	if none := protocol.JoinObjections(nil); none != nil || none.All() != nil {
		t.Errorf("no objections make %v, want none", none)
	}
}

func TestParseHookPhase(t *testing.T) {
	cases := map[string]struct {
		value   string
		want    *protocol.HookPhase
		wantErr string
	}{
		"before the drain": {
			value: `{"policy":"workers","seq":7,"bootID":"b1","stage":"Before","hooks":["example.com/a"],"at":"2026-11-21T12:00:00Z"}`,
			want: &protocol.HookPhase{
				Policy: "workers", Seq: 7, BootID: "b1", Stage: v1alpha1.HooksBefore, Hooks: []v1alpha1.AnnotationKey{"example.com/a"}, At: noon,
			},
		},
		"by an older version": {
			value: `{"seq":7,"stage":"After","at":"2026-11-21T12:00:00Z"}`,
			want:  &protocol.HookPhase{Seq: 7, Stage: v1alpha1.HooksAfter, At: noon},
		},
		"as many of the longest keys as a policy may have": {value: longest().String(), want: longest()},
		"a stage nobody knows": {
			value:   `{"seq":7,"stage":"before"}`,
			wantErr: `annotation reboot-operator.io/hooks: unknown stage "before"`,
		},
		"no time, from which their time-out would count": {
			value:   `{"policy":"workers","seq":7,"bootID":"b1","stage":"Before"}`,
			wantErr: "annotation reboot-operator.io/hooks: at must be set",
		},
		"not even JSON": {
			value:   `true`,
			wantErr: "annotation reboot-operator.io/hooks: json: cannot unmarshal bool into Go value of type protocol.HookPhase",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := protocol.ParseHookPhase(map[string]string{v1alpha1.AnnotationHooks: tc.value})
			compareParsed(t, tc.want, got, tc.wantErr, err)
		})
	}
}

// longest is the longest phase there can be.
func longest() *protocol.HookPhase {
	h := &protocol.HookPhase{Policy: strings.Repeat("p", 253), Seq: 1 << 62, BootID: strings.Repeat("b", 64), Stage: v1alpha1.HooksBefore, At: noon}
	for i := range 20 {
		h.Hooks = append(h.Hooks, v1alpha1.AnnotationKey(fmt.Sprintf("%02d%s/%s", i, strings.Repeat("d", 251), strings.Repeat("k", 63))))
	}
	return h
}

// Behaviour 54: a node without annotations is a node without a record.
func TestParse_NoAnnotations(t *testing.T) {
	for name, annotations := range map[string]map[string]string{"no map": nil, "others only": {"example.com/a": "b"}} {
		t.Run(name, func(t *testing.T) {
			grant, grantErr := protocol.ParseGrant(annotations)
			progress, progressErr := protocol.ParseProgress(annotations)
			report, reportErr := protocol.ParseAgentReport(annotations)
			hooks, hooksErr := protocol.ParseHookPhase(annotations)
			if grant != nil || progress != nil || report != (protocol.AgentReport{}) || hooks != nil {
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
		read := func(value string) (*protocol.Grant, error) {
			return protocol.ParseGrant(map[string]string{v1alpha1.AnnotationGrant: value})
		}
		checkRoundTrip(t, read, value)
	})
}

func FuzzParseProgress(f *testing.F) {
	f.Add(protocol.Progress{Seq: 7, Phase: protocol.PhaseDraining, BootID: "b1", At: noon, DrainStartedAt: &noon}.String())
	f.Add(`[]`)
	f.Add(`{"seq":9223372036854775807,"phase":"Aborted","bootID":"b","failures":-1}`)
	f.Fuzz(func(t *testing.T, value string) {
		read := func(value string) (*protocol.Progress, error) {
			return protocol.ParseProgress(map[string]string{v1alpha1.AnnotationProgress: value})
		}
		checkRoundTrip(t, read, value)
	})
}

func FuzzParseAgentReport(f *testing.F) {
	f.Add(`{"objection":{"reason":"Inhibited","message":"held by backup"}}`)
	f.Add(`{"objection":{"reason":"A","message":"<","also":[{"reason":"B","message":"\ud800","also":[{"reason":"C"}]},{"reason":"D"}]}}`)
	f.Add(`{"objection":{"reason":"A","also":[{}]}}`)
	f.Add(`{"objection":{"reason":"a b","message":""}}`)
	f.Fuzz(func(t *testing.T, value string) {
		read := func(value string) (*protocol.AgentReport, error) {
			r, err := protocol.ParseAgentReport(map[string]string{v1alpha1.AnnotationReport: value})
			if err != nil {
				return nil, err
			}
			return &r, nil
		}
		checkRoundTrip(t, read, value)
		r, _ := read(value)
		if r == nil {
			return
		}
		for _, one := range r.Objection.All() {
			if one.Reason == "" || len(one.Reason) > 64 || strings.ContainsAny(string(one.Reason), " \n\"\x00") {
				t.Errorf("%q objects for the reason %q", value, one.Reason)
			}
		}
	})
}

func FuzzParseHookPhase(f *testing.F) {
	f.Add(longest().String())
	f.Add(`{"stage":"After","hooks":[null]}`)
	f.Add(`{"seq":7,"stage":"Before","hooks":["\ud800"],"at":"0000-01-01T00:00:00Z"}`)
	f.Fuzz(func(t *testing.T, value string) {
		read := func(value string) (*protocol.HookPhase, error) {
			return protocol.ParseHookPhase(map[string]string{v1alpha1.AnnotationHooks: value})
		}
		checkRoundTrip(t, read, value)
	})
}

// checkRoundTrip fails the test unless the value is either an error or a record that can be written: what it reports does
// not change on the way. A record that escaping made too long cannot be read back.
func checkRoundTrip[T any, P interface {
	*T
	fmt.Stringer
}](t *testing.T, read func(string) (P, error), value string) {
	t.Helper()
	record, err := read(value)
	if (record == nil) == (err == nil) {
		t.Fatalf("got %v and %v: want a record or an error", record, err)
	}
	if err != nil || len(record.String()) > 4096 {
		return
	}
	again, err := read(record.String())
	if err != nil {
		t.Fatalf("%s cannot be read back: %v", record, err)
	}
	if again.String() != record.String() {
		t.Fatalf("%s became %s", record, again)
	}
}

// compareParsed fails the test unless value and error are as wanted; "" wants no error.
func compareParsed[T any](t *testing.T, want, got *T, wantErr string, err error) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	message := ""
	if err != nil {
		message = err.Error()
	}
	if diff := cmp.Diff(wantErr, message); diff != "" {
		t.Errorf("error (-want,+got):\n%s", diff)
	}
}
