package reboot

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// refusedPatience is the time for which the API server may refuse the agent's writes before the
// agent is not Ready. An admission policy may be fixed within that time.
const refusedPatience = 30 * time.Second

// refusals records whether the API server accepts the agent's writes to its Node. If it does not,
// the Node cannot show that, so the agent's pod does: an agent that is not Ready counts as missing.
type refusals struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// since is the time of the first refusal in a row, or zero if the last write succeeded. answer
	// is the message of the last one.
	since  time.Time
	answer string
}

// note records the result of a reconcile. Outages do not change anything.
func (r *refusals) note(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.since = time.Time{}
	case !nodepatch.IsRefusal(err):
	case r.since.IsZero():
		r.since = r.clock.Now()
		fallthrough
	default:
		r.answer = err.Error()
	}
}

// check implements healthz.Checker.
func (r *refusals) check(*http.Request) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since.IsZero() || r.clock.Since(r.since) < refusedPatience {
		return nil
	}
	return fmt.Errorf("the API server refuses or does not keep what the agent writes on its Node: %s", r.answer)
}
