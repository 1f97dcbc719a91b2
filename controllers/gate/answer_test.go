package gate

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/common/model"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func sample(value float64, labels ...string) *model.Sample {
	m := model.Metric{}
	for i := 0; i < len(labels); i += 2 {
		m[model.LabelName(labels[i])] = model.LabelValue(labels[i+1])
	}
	return &model.Sample{Metric: m, Value: model.SampleValue(value)}
}

func alert(name, instance string) *model.Sample {
	return sample(1, "__name__", "ALERTS", "alertname", name, "alertstate", "firing", "instance", instance)
}

// TestAnswerOf shows the meaning of each kind of result.
func TestAnswerOf(t *testing.T) {
	const firing, mute = v1alpha1.GateFiring, v1alpha1.GateUnreachable
	quiet := Answer{State: v1alpha1.GateClear}
	for name, tc := range map[string]struct {
		result model.Value
		want   Answer
	}{
		"no series":                                {model.Vector{}, quiet},
		"a series":                                 {model.Vector{sample(3.2, "__name__", "burn", "job", "api")}, Answer{State: firing, Message: `burn{job="api"} = 3.2`}},
		"a series that is 0":                       {model.Vector{sample(0, "job", "api")}, Answer{State: firing, Message: `{job="api"} = 0`}},
		"a series without labels":                  {model.Vector{sample(3)}, Answer{State: firing, Message: `{} = 3`}},
		"the first of several":                     {model.Vector{alert("B", "1"), alert("A", "2")}, Answer{State: firing, Message: `ALERTS{alertname="A", alertstate="firing", instance="2"} = 1`}},
		"an alert of the operator":                 {model.Vector{alert("RebootOperatorNodePending", "1")}, quiet},
		"an alert of the operator and another one": {model.Vector{alert("RebootOperatorHalted", "1"), alert("X", "1")}, Answer{State: firing, Message: `ALERTS{alertname="X", alertstate="firing", instance="1"} = 1`}},
		"another label with the same prefix":       {model.Vector{sample(1, "job", "RebootOperatorX")}, Answer{State: firing, Message: `{job="RebootOperatorX"} = 1`}},
		"a range":                                  {model.Matrix{{Metric: sample(0, "job", "api").Metric, Values: []model.SamplePair{{Value: 1}, {Value: 2}}}}, Answer{State: firing, Message: `{job="api"} = 2`}},
		"a range of the operator's alert":          {model.Matrix{{Metric: alert("RebootOperatorX", "").Metric, Values: []model.SamplePair{{Value: 1}}}}, quiet},
		"a range of histograms": {
			model.Matrix{{Metric: sample(0, "job", "api").Metric, Histograms: []model.SampleHistogramPair{{Histogram: &model.SampleHistogram{Count: 2, Sum: 3}}}}},
			Answer{State: firing, Message: `{job="api"} = Count: 2.000000, Sum: 3.000000, Buckets: []`},
		},
		"a range of a histogram with many buckets": {
			model.Matrix{{Metric: sample(0, "job", "api").Metric, Histograms: []model.SampleHistogramPair{{Histogram: &model.SampleHistogram{
				Count: 2, Sum: 3, Buckets: slices.Repeat(model.HistogramBuckets{{Lower: 0.25, Upper: 0.5, Count: 2}}, 160),
			}}}}},
			Answer{State: firing, Message: `{job="api"} = Count: 2.000000, Sum: 3.000000, Buckets: [(0.25,0.5]:2 (0.25,…`},
		},
		"a range without values": {model.Matrix{{Metric: sample(0, "job", "api").Metric}}, quiet},
		"no range":               {model.Matrix{}, quiet},
		"the number 0":           {&model.Scalar{}, quiet},
		"another number":         {&model.Scalar{Value: 1}, Answer{State: firing, Message: "the query = 1"}},
		"no number": {&model.Scalar{Value: model.SampleValue(math.NaN())}, Answer{
			State: mute, Message: "the query returns NaN, which is neither yes nor no: query a vector, without scalar()",
		}},
		"a string":  {&model.String{Value: "x"}, Answer{State: mute, Message: "the query returns a string, which is neither yes nor no: query a vector"}},
		"no result": {nil, Answer{State: mute, Message: unreadable}},
		"a label that is too long": {model.Vector{sample(1, "a", strings.Repeat("ä", 1000))}, Answer{
			State: firing, Message: `{a="` + strings.Repeat("ä", 446) + "… = 1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := answerOf(tc.result)
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreUnexported(Answer{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(got.Message) > 1024-len("; failurePolicy Ignore lets reboots go on") {
				t.Errorf("%d bytes do not fit a status", len(got.Message))
			}
		})
	}
}

// TestAnswer_Same shows that nodes are written again only for an answer with a new meaning.
func TestAnswer_Same(t *testing.T) {
	quiet, a, b := answerOf(model.Vector{}), alert("A", "n1"), alert("A", "n2")
	worse := alert("A", "n1")
	worse.Value = 7
	for name, tc := range map[string]struct {
		before, after Answer
		want          bool
	}{
		"clear and clear":                            {quiet, quiet, true},
		"clear and firing":                           {quiet, answerOf(model.Vector{a}), false},
		"firing and unreachable":                     {answerOf(model.Vector{a}), unreachable("x"), false},
		"another value":                              {answerOf(model.Vector{a}), answerOf(model.Vector{worse}), true},
		"another blocking series, which sorts first": {answerOf(model.Vector{b}), answerOf(model.Vector{a, b}), true},
		"the named series is gone":                   {answerOf(model.Vector{a, b}), answerOf(model.Vector{b}), false},
		"another failure":                            {unreachable("no such host"), unreachable("connection refused"), false},
		"the same failure, at another moment":        {unreachable("try in 7s, port 41234"), unreachable("try in 12s, port 3"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.before.same(tc.after); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}
