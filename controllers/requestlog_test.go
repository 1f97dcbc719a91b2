package controllers_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// requestLog notes what a manager asks of the API server.
type requestLog struct {
	testenv.Requests

	// cache is what the manager has read.
	cache client.Reader
}

// isNotification reports what a notification of an earlier spec may still ask: its Secret, and the event that it failed.
func isNotification(r *http.Request) bool {
	return strings.Contains(r.URL.Path, "/secrets/") || strings.Contains(r.URL.Path, "/events")
}

// meddleWith has somebody come in between from now on until the end of the spec, before a request is sent, and refuse it.
func (l *requestLog) meddleWith(meddle func(*http.Request) (refuse bool)) {
	l.Refuse(meddle)
	DeferCleanup(func() { l.Refuse(nil) })
}
