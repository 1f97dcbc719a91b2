package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrLost is the error of a client whose answer was lost.
var ErrLost = errors.New("net/http: request canceled (Client.Timeout exceeded while awaiting headers), by the wire")

// Refuse sends nothing, like a cut wire.
func Refuse(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
	unsent(r)
	return nil, ErrCut
}

// Hang never answers a request; the client gives up.
func Hang(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
	unsent(r)
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// Lose drops the answer.
func Lose(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	response, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	_, _ = io.Copy(io.Discard, response.Body) // it is lost anyway
	response.Body.Close()
	return nil, ErrLost
}

// Forbid answers like the API server if a right is missing.
var Forbid = Fail(metav1.Status{Reason: metav1.StatusReasonForbidden, Code: http.StatusForbidden, Message: "it is forbidden"})

// Fail answers with a failure that does not come from an API server.
func Fail(status metav1.Status) Func {
	return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		response := Answer(r, int(status.Code), Failure(status))
		if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
			response.Header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
		}
		return response, nil
	}
}

// Failure returns a status as an API server sends it.
func Failure(status metav1.Status) metav1.Status {
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	status.Status = metav1.StatusFailure
	return status
}

// Answer returns an API server's answer to a request that was not sent.
func Answer(r *http.Request, code int, content any) *http.Response {
	unsent(r)
	text, err := json.Marshal(content)
	if err != nil {
		panic(err)
	}
	return &http.Response{
		StatusCode: code, Request: r, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)),
	}
}

func unsent(r *http.Request) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body) // nobody reads it
		r.Body.Close()
	}
}
