package drains

import (
	"net/http"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
)

// measured is one drain.
type measured struct {
	// took is the time from the cordon to the end: the agent's point of no return, kubectl's exit.
	took  time.Duration
	asked asked
	// ended reports that it was not waited for: it takes longer.
	ended bool
}

// asked is what was asked of the API server.
type asked struct {
	// Lists, watches and gets are reads.
	lists, watches, gets int
	// evictions were accepted; refused are those that a budget, or the server's own protection, answered with 429.
	evictions, refused int
	// others are writes, and evictions that failed otherwise.
	others int
}

func (a asked) total() int { return a.lists + a.watches + a.gets + a.evictions + a.refused + a.others }

// pair is the same pods drained by both.
type pair struct {
	pods              int
	tight             bool
	operator, kubectl measured
}

func (p pair) budgets() string {
	if p.tight {
		return "tight budgets"
	}
	return "no budgets"
}

// count counts the requests of somebody.
func count(requests []embedded.Request, theirs func(embedded.Request) bool) (a asked) {
	for _, r := range requests {
		if !theirs(r) {
			continue
		}
		switch {
		case r.Resource == "pods/eviction" && r.Code < http.StatusMultipleChoices:
			a.evictions++
		case r.Resource == "pods/eviction" && r.Code == http.StatusTooManyRequests:
			a.refused++
		case r.Verb == "list":
			a.lists++
		case r.Verb == "watch":
			a.watches++
		case r.Verb == "get":
			a.gets++
		default:
			a.others++
		}
	}
	return a
}

func byUser(name string) func(embedded.Request) bool {
	return func(r embedded.Request) bool { return r.User == name }
}

// agents is the user that every agent is before it acts as its node.
const agents = "system:serviceaccount:reboot-operator-system:reboot-operator-agent"

// byAgentOf are the requests of an agent: as its node, and those of its own right. Other nodes' agents ask for nothing of
// that kind while they are at rest.
func byAgentOf(node string) func(embedded.Request) bool {
	return func(r embedded.Request) bool {
		return r.User == agents && (r.As == "" || r.As == "system:node:"+node)
	}
}

// cordoned is when somebody wrote a Node first.
func cordoned(requests []embedded.Request, user string) time.Time {
	for _, r := range requests {
		if r.User == user && r.Resource == "nodes" && r.IsWrite() {
			return r.At
		}
	}
	return time.Time{}
}
