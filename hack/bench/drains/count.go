package drains

import (
	"net/http"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
)

// measured is one drain.
type measured struct {
	// took is the time from the cordon to the end: the agent's point of no return, kubectl's exit.
	took time.Duration
	// asked is what was asked of the API server, by column.
	asked map[string]int
	// ended reports that it was not waited for: it takes longer.
	ended bool
}

// columns of requests. Evictions were accepted; refused are those that a budget, or the server's own protection, answered with 429; other are
// writes, and evictions that failed otherwise.
var columns = []string{"list", "watch", "get", "evictions", "refused", "other", "all"}

// pair is the same pods drained by both.
type pair struct {
	pods              int
	tight             bool
	operator, kubectl measured
}

func (p pair) budgets() string {
	if p.tight {
		return "tight"
	}
	return "no"
}

// count counts the requests of one of the two, by column.
func count(requests []embedded.Request, theirs func(embedded.Request) bool) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		if theirs(r) {
			counts[columnOf(r)]++
			counts["all"]++
		}
	}
	return counts
}

func columnOf(r embedded.Request) string {
	switch {
	case r.Resource == "pods/eviction" && r.Code < http.StatusMultipleChoices:
		return "evictions"
	case r.Resource == "pods/eviction" && r.Code == http.StatusTooManyRequests:
		return "refused"
	case r.Verb == "list", r.Verb == "watch", r.Verb == "get":
		return r.Verb
	}
	return "other"
}

// byAgentOf are the requests of an agent: as its node, and those of its own right. Other nodes' agents ask for nothing of
// that kind while they are at rest.
func byAgentOf(node string) func(embedded.Request) bool {
	return func(r embedded.Request) bool {
		return fleet.ProgramOf(r) == "agent" && (r.As == "" || r.As == "system:node:"+node)
	}
}

// cordoned is when a user wrote a Node first.
func cordoned(requests []embedded.Request, user string) time.Time {
	for _, r := range requests {
		if r.User == user && r.Resource == "nodes" && r.IsWrite() {
			return r.At
		}
	}
	return time.Time{}
}
