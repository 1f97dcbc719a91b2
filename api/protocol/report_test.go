package protocol_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestParseAgentReport_Objection(t *testing.T) {
	parsed[protocol.Objection]{
		"an inhibitor": {
			`{"objection":{"reason":"Inhibited","message":"apt holds a block inhibitor"}}`,
			&protocol.Objection{Reason: v1alpha1.ReasonInhibited, Message: "apt holds a block inhibitor"}, "",
		},
		"two objections": {
			value: `{"objection":{"reason":"Inhibited","message":"apt","also":[{"reason":"CoordinatorConflict","message":"locksmithd"}]}}`,
			want: &protocol.Objection{Reason: v1alpha1.ReasonInhibited, Message: "apt", Also: []protocol.Objection{
				{Reason: v1alpha1.ReasonCoordinatorConflict, Message: "locksmithd"},
			}},
		},
		"a further one without a reason": {`{"objection":{"reason":"Inhibited","also":[{"message":"because"}]}}`, nil, "reason must be set"},
		"one within a further one: as deep as a record is long, reading it would take hundreds of megabytes": {
			`{"objection":{"reason":"Inhibited","also":[{"reason":"Inhibited","also":[{"reason":"Inhibited"}]}]}}`,
			nil, "a further objection has further ones",
		},
		"a reason that no condition would take": {`{"objection":{"reason":"Inhibited","also":[{"reason":"not now"}]}}`, nil, "the reason must be letters and digits, such as Inhibited"},
		"no reason":                             {`{"objection":{"message":"because"}}`, nil, "reason must be set"},
		"not even JSON":                         {`true story`, nil, "invalid character 's' after top-level value"},
	}.each(t, v1alpha1.AnnotationReport, func(annotations map[string]string) (*protocol.Objection, error) {
		report, err := protocol.ParseAgentReport(annotations)
		return report.Objection, err
	})
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

func TestParseAgentReport_Preflight(t *testing.T) {
	const head = `{"preflight":{"policy":"workers","revision":"r1","bootID":"b1"`
	pods := func(count string, names int) string {
		return head + `,"kept":{"count":` + count + `,"pods":[` + strings.TrimSuffix(strings.Repeat(`{"pod":"a/b"},`, names), ",") + `]}}}`
	}
	const wrongPods = "annotation reboot-operator.io/report: 1 to 5 pods must be named, and count be at least as many"
	cases := map[string]struct{ value, wantErr string }{
		"nothing is in the way":             {head + "}}", ""},
		"some pods of many":                 {pods("300", 5), ""},
		"a field of a later release":        {head + `,"later":[1]}}`, ""},
		"no boot":                           {`{"preflight":{"policy":"workers","revision":"r1"}}`, "annotation reboot-operator.io/report: policy, revision and bootID must be set"},
		"no question":                       {`{"preflight":{"bootID":"b1"}}`, "annotation reboot-operator.io/report: policy, revision and bootID must be set"},
		"null":                              {"null", "annotation reboot-operator.io/report: null is no record"},
		"pods that are in the way unnamed":  {pods("1", 0), wrongPods},
		"more pods than are named":          {pods("6", 6), wrongPods},
		"fewer than are named":              {pods("1", 2), wrongPods},
		"a number that is negative":         {pods("-1", 1), wrongPods},
		"a number that no integer can hold": {pods("9999999999", 1), "annotation reboot-operator.io/report: json: cannot unmarshal number 9999999999 into Go struct field NamedPods.preflight.kept.count of type int32"},
		"more than a record has":            {head + `,"problem":"` + strings.Repeat("x", 40000) + `"}}`, "annotation reboot-operator.io/report: 40077 bytes are too many"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := ""
			r, err := protocol.ParseAgentReport(map[string]string{v1alpha1.AnnotationReport: tc.value})
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.wantErr, got); diff != "" || (r.Preflight == nil) != (err != nil) {
				t.Errorf("%v (-want +got):\n%s", r, diff)
			}
		})
	}
}

func TestParsePreflight(t *testing.T) {
	want := protocol.Preflight{Policy: "workers", Revision: "r1"}
	got, err := protocol.ParsePreflight(map[string]string{v1alpha1.AnnotationPreflight: want.String()})
	if err != nil || *got != want {
		t.Errorf("got %v, %v", got, err)
	}
	for _, value := range []string{"", "{}", `{"policy":"workers"}`, `{"revision":"r1"}`, "[]"} {
		if p, err := protocol.ParsePreflight(map[string]string{v1alpha1.AnnotationPreflight: value}); err == nil {
			t.Errorf("%s is read as %v", value, p)
		}
	}
}

func FuzzParseAgentReport(f *testing.F) {
	f.Add(`{"objection":{"reason":"Inhibited","message":"held by backup"}}`)
	f.Add(`{"objection":{"reason":"A","message":"<","also":[{"reason":"B","message":"\ud800","also":[{"reason":"C"}]},{"reason":"D"}]}}`)
	f.Add(`{"objection":{"reason":"A","also":[{}]}}`)
	f.Add(`{"objection":{"reason":"a b","message":""}}`)
	f.Fuzz(func(t *testing.T, value string) {
		checkRoundTrip(t, v1alpha1.AnnotationReport, func(annotations map[string]string) (*protocol.AgentReport, error) {
			r, err := protocol.ParseAgentReport(annotations)
			if err != nil {
				return nil, err
			}
			return &r, nil
		}, value)
		r, err := protocol.ParseAgentReport(map[string]string{v1alpha1.AnnotationReport: value})
		if err != nil {
			return
		}
		for _, one := range r.Objection.All() {
			if one.Reason == "" || len(one.Reason) > 64 || strings.ContainsAny(string(one.Reason), " \n\"\x00") {
				t.Errorf("%q objects for the reason %q", value, one.Reason)
			}
		}
	})
}
