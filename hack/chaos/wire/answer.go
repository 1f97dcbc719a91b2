package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/reboot-operator/reboot-operator/hack/chaos/schedule"
)

// answers are what an API server answers of each kind.
var answers = map[schedule.Kind]*apierrors.StatusError{
	schedule.Conflict:    apierrors.NewConflict(schema.GroupResource{Resource: "objects"}, "", errors.New("the object has been modified")),
	schedule.TooMany:     apierrors.NewTooManyRequests("too many requests, please try again later", 1),
	schedule.ServerError: apierrors.NewInternalError(errors.New("etcdserver: leader changed")),
}

func answer(req *http.Request, kind schedule.Kind) *http.Response {
	status := answers[kind].Status()
	status.Kind, status.APIVersion = "Status", "v1"
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
