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
)

// Request is one request that the API server answered, refused or began to stream.
type Request struct {
	// At is when it was received.
	At time.Time
	// User is who authenticated.
	User string
	// As is the user it was impersonated as. Empty: none.
	As string
	// Verb is the API verb, such as get, list, watch or patch.
	Verb string
	// Resource is the plural name, with "/subresource" where there is one; for what is no resource, the path.
	Resource string
	// Namespace and Name state which object. Empty where the request names none.
	Namespace, Name string
	// Code is the HTTP status.
	Code int
}

// IsWrite reports whether the request could change something.
func (r Request) IsWrite() bool {
	switch r.Verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// RequestKind is what Tally counts by.
type RequestKind struct{ User, As, Verb, Resource string }

// Tally counts requests by user, verb and resource.
func Tally(requests []Request) map[RequestKind]int {
	counts := map[RequestKind]int{}
	for _, r := range requests {
		counts[RequestKind{r.User, r.As, r.Verb, r.Resource}]++
	}
	return counts
}

// auditLog is the API server's, in its folder.
type auditLog struct{ folder string }

// AuditLog is the path of the API server's audit log.
func (a auditLog) AuditLog() string { return filepath.Join(a.folder, "audit.log") }

// Requests are the requests that the API server received from one instant until before another. Those it is still
// working on are missing.
func (a auditLog) Requests(from, to time.Time) ([]Request, error) {
	file, err := os.Open(a.AuditLog())
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}
	defer file.Close()
	return readAudit(file, from, to)
}

// auditEvent is the part of audit.k8s.io/v1 Event that is counted.
type auditEvent struct {
	Stage            string    `json:"stage"`
	RequestURI       string    `json:"requestURI"`
	Verb             string    `json:"verb"`
	User             auditUser `json:"user"`
	ImpersonatedUser auditUser `json:"impersonatedUser"`
	ObjectRef        *struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
}

type auditUser struct {
	Username string `json:"username"`
}

// readAudit reads one JSON object a line. A last line that is still being written is left for the next time.
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
		var e auditEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		at := e.RequestReceivedTimestamp
		if e.isCounted() && !at.Before(from) && at.Before(to) {
			requests = append(requests, e.request())
		}
	}
}

// isCounted is true once for each request: a stream is counted when it starts, everything else when it is answered.
func (e auditEvent) isCounted() bool {
	if e.Verb == "watch" {
		return e.Stage == "ResponseStarted" || e.ResponseStatus.Code >= 400
	}
	return e.Stage == "ResponseComplete"
}

func (e auditEvent) request() Request {
	r := Request{
		At: e.RequestReceivedTimestamp, User: e.User.Username, As: e.ImpersonatedUser.Username,
		Verb: e.Verb, Resource: e.RequestURI, Code: e.ResponseStatus.Code,
	}
	if ref := e.ObjectRef; ref != nil {
		r.Resource, r.Namespace, r.Name = ref.Resource, ref.Namespace, ref.Name
		if ref.Subresource != "" {
			r.Resource += "/" + ref.Subresource
		}
	}
	return r
}
