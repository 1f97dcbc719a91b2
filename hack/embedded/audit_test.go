package embedded

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func line(stage, verb, user, as, object string, code, second int) string {
	return fmt.Sprintf(`{"stage":%q,"requestURI":"/livez?x","verb":%q,"user":{"username":%q},"impersonatedUser":{"username":%q},`+
		`"objectRef":%s,"responseStatus":{"code":%d},"requestReceivedTimestamp":"2026-01-01T00:00:%02d.000000Z"}`,
		stage, verb, user, as, object, code, second)
}

func TestReadAudit(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	const status = `{"resource":"nodes","subresource":"status","name":"n1"}`
	log := strings.Join([]string{
		line("ResponseComplete", "patch", "agent", "system:node:n1", status, 200, 1),
		line("ResponseComplete", "patch", "agent", "system:node:n1", status, 409, 2),
		line("ResponseStarted", "watch", "agent", "", `{"resource":"pods","namespace":"x"}`, 200, 3),
		line("ResponseComplete", "watch", "agent", "", `{"resource":"pods","namespace":"x"}`, 200, 3),
		line("ResponseComplete", "watch", "agent", "", `{"resource":"pods"}`, 403, 4),
		line("ResponseStarted", "list", "agent", "", `{"resource":"pods"}`, 200, 4),
		line("ResponseComplete", "get", "agent", "", "null", 200, 5),
		`{"stage":"ResponseComplete","requestURI":"/old","verb":"get","annotations":{"k8s.io/deprecated":"true"},` +
			`"requestReceivedTimestamp":"2026-01-01T00:00:06.000000Z"}`,
		line("ResponseComplete", "get", "late", "", "null", 200, 10),
		`{"stage":"ResponseComplete","verb":"get","cut of`,
	}, "\n")
	got, err := readAudit(strings.NewReader(log), begin, begin.Add(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	want := []Request{
		{User: "agent", As: "system:node:n1", Verb: "patch", Resource: "nodes/status", Name: "n1", Code: 200},
		{User: "agent", As: "system:node:n1", Verb: "patch", Resource: "nodes/status", Name: "n1", Code: 409},
		{User: "agent", Verb: "watch", Resource: "pods", Namespace: "x", Code: 200},
		{User: "agent", Verb: "watch", Resource: "pods", Code: 403},
		{User: "agent", Verb: "get", Resource: "/livez?x", Code: 200},
		{Verb: "get", Resource: "/old", Deprecated: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestReadAudit_ReportsALogItDoesNotUnderstand(t *testing.T) {
	if _, err := readAudit(strings.NewReader("no JSON\n"), time.Time{}, time.Time{}); err == nil {
		t.Error("no error")
	}
}
