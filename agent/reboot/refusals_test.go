package reboot

import (
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/reboot-operator/reboot-operator/api/protocol"
)

// TestCheckWrites shows that an agent which cannot write its Node is not Ready. The manager cannot
// see anything else of it.
func TestCheckWrites(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n1", errAPI)
	r, api, _ := makeReconciler(t, protocol.Record{})
	clock := testclock.NewFakeClock(now)
	r.change(func(c *Config) { c.Clock = clock })
	api.node.Status.Conditions = nil
	for _, then := range []struct {
		what  string
		err   error
		after time.Duration
		ready bool
	}{
		{"nothing was refused", errAPI, time.Hour, true},
		{"a write is refused", forbidden, time.Second, true},
		{"it is refused for less than half a minute", forbidden, 28 * time.Second, true},
		{"for longer, while the API server is away", errAPI, time.Second, false},
		{"it is refused still", forbidden, time.Hour, false},
		{"it is written", nil, time.Second, true},
	} {
		api.patchErr = then.err
		_, _ = r.Reconcile(t.Context(), ctrl.Request{})
		clock.Step(then.after)
		err := r.CheckWrites(&http.Request{})
		if (err == nil) != then.ready || err != nil && !strings.Contains(err.Error(), "forbidden") {
			t.Errorf("%s: %v", then.what, err)
		}
	}
	// The refusals in a row emit one event. The successful write has ended the row.
	if got := strings.Count(strings.Join(r.announcer.emitted(), "\n"), "NodeWriteRefused"); got != 1 {
		t.Errorf("%d events", got)
	}
}
