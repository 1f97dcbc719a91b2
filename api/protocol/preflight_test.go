package protocol_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

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
