package gate

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/model"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// ownAlerts is how the names of this operator's alert rules begin. They are about nodes that wait, so they may not keep them.
const ownAlerts = "RebootOperator"

// longest is the longest message, in bytes, without a value, and longestValue the longest value: a histogram has any number of buckets. A
// status takes 1024.
const longest, longestValue = 900, 64

// Answer is what a gate reports.
type Answer struct {
	State v1alpha1.GateState
	// Message names a series or an object that blocks, or why the gate could not be asked. Empty: clear.
	Message string
	// blocking are all series or objects that block, in their order; the first one is in the message.
	blocking []string
}

// answerOf turns a result into an answer. Any series blocks, and any number but 0. What means neither yes nor no is a
// mistake in the query, and taken for a gate that cannot be asked.
func answerOf(result model.Value) Answer {
	var series map[string]string
	switch v := result.(type) {
	case model.Vector:
		series = make(map[string]string, len(v))
		for _, s := range v {
			if !own(s.Metric) {
				series[s.Metric.String()] = s.Value.String()
			}
		}
	case model.Matrix:
		series = make(map[string]string, len(v))
		for _, s := range v {
			if value := latest(s); value != "" && !own(s.Metric) {
				series[s.Metric.String()] = value
			}
		}
	case *model.Scalar:
		switch {
		case v.Value == 0:
		case math.IsNaN(float64(v.Value)):
			return unreachable("the query gives NaN, which is neither yes nor no: ask for a vector, without scalar()")
		default:
			series = map[string]string{"the query": v.Value.String()}
		}
	case nil:
		return unreachable(unreadable)
	default:
		return unreachable(fmt.Sprintf("the query gives a %s, which is neither yes nor no: ask for a vector", result.Type()))
	}
	return blockedBy(series)
}

// latest is the last value of a range, which may have native histograms only. Empty: it has none.
func latest(s *model.SampleStream) string {
	switch n, h := len(s.Values), len(s.Histograms); {
	case n > 0:
		return s.Values[n-1].Value.String()
	case h > 0:
		return s.Histograms[h-1].Histogram.String()
	}
	return ""
}

func own(metric model.Metric) bool {
	return strings.HasPrefix(string(metric[model.AlertNameLabel]), ownAlerts)
}

// blockedBy reports the first series; the others are in the server.
func blockedBy(values map[string]string) Answer {
	if len(values) == 0 {
		return Answer{State: v1alpha1.GateClear}
	}
	a := Answer{State: v1alpha1.GateFiring, blocking: slices.Sorted(maps.Keys(values))}
	a.Message = message.Shorten(longest, a.blocking[0]) + " = " + message.Shorten(longestValue, values[a.blocking[0]])
	return a
}

func unreachable(why string) Answer {
	return Answer{State: v1alpha1.GateUnreachable, Message: message.Shorten(longest, why)}
}

var digits = regexp.MustCompile(`[0-9]+`)

// same reports whether another answer is no news: a series or an object that was named still blocks, or the same fails, whatever the
// numbers in the message. News is written to the conditions of thousands of waiting nodes.
func (a Answer) same(b Answer) bool {
	switch {
	case a.State != b.State:
		return false
	case len(a.blocking) > 0:
		_, found := slices.BinarySearch(b.blocking, a.blocking[0])
		return found
	}
	return digits.ReplaceAllString(a.Message, "0") == digits.ReplaceAllString(b.Message, "0")
}
