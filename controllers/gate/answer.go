package gate

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"

	promv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// ownAlerts is the prefix of the names of this operator's alerts. They are about waiting nodes, so
// they must not block them.
const ownAlerts = "RebootOperator"

// longest is the longest message without a value, in bytes, and longestValue the longest value,
// because a histogram may have any number of buckets. A status accepts 1024 bytes.
const longest, longestValue = 900, 64

// Answer is the result of a query of a gate.
type Answer struct {
	State v1alpha1.GateState
	// Message names a series or an object that blocks, or says why the query failed. It is empty if
	// the gate is clear.
	Message string
	// blocking are all series or objects that block, in order. The message names the first one.
	blocking []string
}

// answerOf turns a query result into an answer. Any series blocks, and so does any number but 0. A
// result that means neither yes nor no comes from a mistake in the query and counts as a failure.
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
			return unreachable("the query returns NaN, which is neither yes nor no: query a vector, without scalar()")
		default:
			series = map[string]string{"the query": v.Value.String()}
		}
	case nil:
		return unreachable(unreadable)
	default:
		return unreachable(fmt.Sprintf("the query returns a %s, which is neither yes nor no: query a vector", result.Type()))
	}
	return blockedBy(series)
}

// latest returns the last value of a range, which may only have native histograms. It is empty if
// the range is.
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

// blockedBy returns an answer that names the first series. The others can be seen on the server.
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

// same reports whether another answer means the same: the named series or object still blocks, or
// the query fails in the same way, even if numbers in the message differ. Other answers are written
// to the conditions of thousands of waiting nodes.
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

// why says in one sentence why a query failed. It never contains credentials.
func why(err error) string {
	var api *promv1.Error
	var slow net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &slow) && slow.Timeout():
		return fmt.Sprintf("no answer within %s", timeout)
	case strings.Contains(err.Error(), `unexpected value type "string"`): // the library does not support strings
		return "the query returns a string, which is neither yes nor no: query a vector"
	case errors.As(err, &api):
		return refusal(api)
	}
	return broken(err)
}

const unreadable = "the response cannot be read: check that url is the API of a Prometheus server, and whether it needs http or https"

// notOfTheAPI are the library's messages for a 400 or 422 that is not in the API's format. The API
// itself gives both a reason.
var notOfTheAPI = []string{"client error: 400", "client error: 422"}

// refusal says why a server that has answered refused.
func refusal(err *promv1.Error) string {
	switch {
	case err.Type == promv1.ErrBadData:
		return "the query is refused: " + err.Msg
	case err.Type == promv1.ErrBadResponse, slices.Contains(notOfTheAPI, err.Msg):
		return unreadable
	default:
		return "the server refuses: " + err.Msg
	}
}

// broken returns the text of a network error without details that differ each time, such as the
// local port.
func broken(err error) string {
	var operation *net.OpError
	var certificate x509.CertificateInvalidError
	var address *url.Error
	switch {
	case errors.Is(err, errRedirected):
		return errRedirected.Error()
	case errors.As(err, &certificate) && certificate.Reason == x509.Expired:
		return "the server's certificate has expired or is not valid yet"
	case errors.As(err, &operation) && operation.Addr != nil && operation.Op == "dial":
		return fmt.Sprintf("%s cannot be reached: %v", operation.Addr, operation.Err)
	case errors.As(err, &operation):
		return fmt.Sprintf("the connection broke: %v", operation.Err)
	case errors.As(err, &address):
		return address.Err.Error()
	}
	return err.Error()
}
