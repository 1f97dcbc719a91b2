package protocol_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func TestParseAgentReport_BlockedBy(t *testing.T) {
	parsed[protocol.AgentReport]{
		"an inhibitor": {
			`{"blockedBy":[{"reason":"Inhibited","message":"apt holds a block inhibitor"}]}`,
			&protocol.AgentReport{BlockedBy: []protocol.Blocker{{Reason: v1alpha1.ReasonInhibited, Message: "apt holds a block inhibitor"}}}, "",
		},
		"two reasons": {
			value: `{"blockedBy":[{"reason":"Inhibited","message":"apt"},{"reason":"CoordinatorConflict","message":"locksmithd"}]}`,
			want: &protocol.AgentReport{BlockedBy: []protocol.Blocker{
				{Reason: v1alpha1.ReasonInhibited, Message: "apt"}, {Reason: v1alpha1.ReasonCoordinatorConflict, Message: "locksmithd"},
			}},
		},
		"a second one without a reason":      {`{"blockedBy":[{"reason":"Inhibited"},{"message":"because"}]}`, nil, "reason must be set"},
		"a reason that no condition accepts": {`{"blockedBy":[{"reason":"Inhibited"},{"reason":"not now"}]}`, nil, "the reason must be letters and digits, such as Inhibited"},
		"no reason":                          {`{"blockedBy":[{"message":"because"}]}`, nil, "reason must be set"},
		"not even JSON":                      {`true story`, nil, "invalid character 's' after top-level value"},
	}.each(t, v1alpha1.AnnotationReport, func(annotations map[string]string) (*protocol.AgentReport, error) {
		report, err := protocol.ParseAgentReport(annotations)
		if err != nil {
			return nil, err
		}
		return &report, nil
	})
}

func TestAgentReport_ThreeOfTheLongestReasonsAreReadBack(t *testing.T) {
	long := strings.Repeat("<", 512)
	all := []protocol.Blocker{{Reason: "A", Message: long}, {Reason: "B", Message: long}, {Reason: "C", Message: long}}
	read, err := protocol.ParseAgentReport(map[string]string{v1alpha1.AnnotationReport: protocol.AgentReport{BlockedBy: all}.String()})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(all, read.BlockedBy); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
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
		"no request":                        {`{"preflight":{"bootID":"b1"}}`, "annotation reboot-operator.io/report: policy, revision and bootID must be set"},
		"null":                              {"null", "annotation reboot-operator.io/report: null is not a record"},
		"pods in the way without names":     {pods("1", 0), wrongPods},
		"more pods than names":              {pods("6", 6), wrongPods},
		"fewer pods than names":             {pods("1", 2), wrongPods},
		"a negative number":                 {pods("-1", 1), wrongPods},
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
	f.Add(`{"blockedBy":[{"reason":"Inhibited","message":"held by backup"}]}`)
	f.Add(`{"blockedBy":[{"reason":"A","message":"<"},{"reason":"B","message":"\ud800"},{"reason":"C"}]}`)
	f.Add(`{"blockedBy":[{"reason":"A"},{}]}`)
	f.Add(`{"blockedBy":[{"reason":"a b","message":""}]}`)
	f.Fuzz(func(t *testing.T, value string) {
		checkRoundTrip(t, v1alpha1.AnnotationReport, func(annotations map[string]string) (*protocol.AgentReport, error) {
			r, err := protocol.ParseAgentReport(annotations)
			if err != nil {
				return nil, err
			}
			if r.String() == "" {
				return nil, errors.New("the report is empty")
			}
			return &r, nil
		}, value)
		r, err := protocol.ParseAgentReport(map[string]string{v1alpha1.AnnotationReport: value})
		if err != nil {
			return
		}
		for _, one := range r.BlockedBy {
			if one.Reason == "" || len(one.Reason) > 64 || strings.ContainsAny(string(one.Reason), " \n\"\x00") {
				t.Errorf("%q is blocked for the reason %q", value, one.Reason)
			}
		}
	})
}
