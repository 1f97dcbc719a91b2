package wire

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
)

// answers are what an API server reports of each kind.
var answers = map[schedule.Kind]metav1.Status{
	schedule.Conflict: {
		Code: http.StatusConflict, Reason: metav1.StatusReasonConflict,
		Message: "the object has been modified; please apply your changes to the latest version and try again",
	},
	schedule.TooMany: {
		Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
		Message: "too many requests, please try again later", Details: &metav1.StatusDetails{RetryAfterSeconds: 1},
	},
	schedule.ServerError: {
		Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "etcdserver: leader changed",
	},
}

func answer(req *http.Request, kind schedule.Kind) *http.Response {
	status := answers[kind]
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	status.Status = metav1.StatusFailure
	text, _ := json.Marshal(status) // a constant, which a test encodes
	resp := &http.Response{
		Status: http.StatusText(int(status.Code)), StatusCode: int(status.Code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)),
		ContentLength: int64(len(text)), Request: req,
	}
	if kind == schedule.TooMany {
		resp.Header.Set("Retry-After", "1")
	}
	return resp
}
