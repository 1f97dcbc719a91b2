package embedded

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Request is one request that the API server answered, refused or began to stream.
type Request struct {
	// User is the authenticated user.
	User string
	// As is the impersonated user, or empty.
	As string
	// Verb is the API verb, such as get, list, watch or patch.
	Verb string
	// Resource is the plural name, followed by "/subresource" if there is one. For requests that do
	// not address a resource it is the path.
	Resource string
	// Namespace and Name identify the object. They are empty if the request names none.
	Namespace, Name string
	// Code is the HTTP status.
	Code int
	// Deprecated is set if the API server warned that the kind is deprecated.
	Deprecated bool
}

// IsWrite reports whether the request can change something.
func (r Request) IsWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// auditLog is the path of the API server's audit log.
func (f *folders) auditLog() string { return filepath.Join(f.Dir, "audit.log") }

// Requests returns the requests that the API server received from one instant until before another,
// except those it is still working on.
func (f *folders) Requests(from, to time.Time) ([]Request, error) {
	file, err := os.Open(f.auditLog())
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer file.Close()
	return readAudit(file, from, to)
}

// readAudit reads one JSON object per line. It leaves an incomplete last line for the next call.
func readAudit(r io.Reader, from, to time.Time) ([]Request, error) {
	var requests []Request
	lines := bufio.NewReaderSize(r, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return requests, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		received := e.RequestReceivedTimestamp.Time
		if isCounted(&e) && !received.Before(from) && received.Before(to) {
			requests = append(requests, requestOf(&e))
		}
	}
}

// isCounted is true once per request: a stream counts when it starts, everything else when it is
// answered.
func isCounted(e *auditv1.Event) bool {
	if e.Verb == "watch" {
		return e.Stage == auditv1.StageResponseStarted || e.ResponseStatus != nil && e.ResponseStatus.Code >= 400
	}
	return e.Stage == auditv1.StageResponseComplete
}

func requestOf(e *auditv1.Event) Request {
	r := Request{
		User: e.User.Username, Verb: e.Verb, Resource: e.RequestURI,
		Deprecated: e.Annotations["k8s.io/deprecated"] == "true",
	}
	if e.ImpersonatedUser != nil {
		r.As = e.ImpersonatedUser.Username
	}
	if e.ResponseStatus != nil {
		r.Code = int(e.ResponseStatus.Code)
	}
	if ref := e.ObjectRef; ref != nil {
		r.Resource, r.Namespace, r.Name = ref.Resource, ref.Namespace, ref.Name
		if ref.Subresource != "" {
			r.Resource += "/" + ref.Subresource
		}
	}
	return r
}
