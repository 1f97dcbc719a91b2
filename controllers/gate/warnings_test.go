package gate

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// A querier before several stores answers for those that it reaches, and warns of the others: nothing is as good as unknown.
func TestPrometheus_AnIncompleteAnswerIsNotClear(t *testing.T) {
	const warning = `"warnings": ["no StoreAPIs matched for this query: store prod-1 is down"]`
	for name, tc := range map[string]struct {
		result, warnings string
		want             v1alpha1.GateState
		message          string
	}{
		"nothing blocks":                  {`[]`, `"warnings": []`, v1alpha1.GateClear, ""},
		"nothing blocks in what is there": {`[]`, warning, v1alpha1.GateUnreachable, "the answer may be incomplete: no StoreAPIs matched"},
		"several are down, reported in one order": {
			`[]`, `"warnings": ["store b is down", "PromQL warning: a", "store a is down"]`, v1alpha1.GateUnreachable, "the answer may be incomplete: store a is down",
		},
		"what is said about the query itself": {
			`[]`, `"warnings": ["PromQL info: metric might not be a counter, name does not end in _total", "PromQL warning: mixed"]`, v1alpha1.GateClear, "",
		},
		"something blocks in what is there": {`[{"metric": {"job": "api"}, "value": [1, "2"]}]`, warning, v1alpha1.GateFiring, `{job="api"} = 2`},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, err := fmt.Fprintf(w, `{"status": "success", "data": {"resultType": "vector", "result": %s}, %s}`, tc.result, tc.warnings)
				if err != nil {
					t.Error(err)
				}
			}))
			t.Cleanup(s.Close)
			got := (&Prometheus{}).Ask(t.Context(), v1alpha1.PrometheusGate{Name: "g", URL: s.URL, Query: "up == 0"})
			if got.State != tc.want || !strings.Contains(got.Message, tc.message) {
				t.Errorf("%s %q, want %s %q", got.State, got.Message, tc.want, tc.message)
			}
		})
	}
}
