package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
)

// Asked counts the requests of the operator's programs to the API server.
type Asked struct {
	// Writes counts all write requests except evictions, Events and Leases, most frequent first.
	Writes []Line
	// Reads counts gets and lists, except of Leases.
	Reads []Line
	// Evictions, Events, Watches and Leases count requests of these kinds.
	Evictions, Events, Watches, Leases int
	// Refused counts requests that ended with an error, except evictions.
	Refused int
}

// Line counts the requests of one kind by one program.
type Line struct {
	// Program is agent or manager.
	Program string
	// Verb and Resource describe the request.
	Verb, Resource string
	// Count is the number of requests.
	Count int
}

// Total adds up lines.
func Total(lines []Line) int {
	total := 0
	for _, l := range lines {
		total += l.Count
	}
	return total
}

// Work counts all requests except watches and those for Leases.
func (a Asked) Work() int { return Total(a.Writes) + Total(a.Reads) + a.Evictions + a.Events }

// Account counts the requests of the operator's programs, and ignores all others.
func Account(requests []embedded.Request) Asked {
	var asked Asked
	writes, reads := map[Line]int{}, map[Line]int{}
	for _, r := range requests {
		line := Line{Program: ProgramOf(r), Verb: r.Verb, Resource: r.Resource}
		if line.Program == "" {
			continue
		}
		if r.Code >= 400 && r.Resource != evictions {
			asked.Refused++
		}
		switch {
		case r.Resource == evictions:
			asked.Evictions++
		case r.Resource == "events":
			asked.Events++
		case r.Resource == "leases":
			asked.Leases++
		case r.Verb == "watch":
			asked.Watches++
		case r.IsWrite():
			writes[line]++
		default:
			line.Resource, _, _ = strings.Cut(line.Resource, "?")
			reads[line]++
		}
	}
	asked.Writes, asked.Reads = lines(writes), lines(reads)
	return asked
}

const evictions = "pods/eviction"

// users maps the operator's users to its programs. An agent acts as its Node, but authenticates as
// itself.
var users = map[string]string{
	"system:serviceaccount:" + namespace + ":reboot-operator-agent":   agentProgram,
	"system:serviceaccount:" + namespace + ":reboot-operator-manager": managerProgram,
}

// ProgramOf returns the program that sent a request, agent or manager, or "" for others.
func ProgramOf(r embedded.Request) string { return users[r.User] }

func lines(counts map[Line]int) []Line {
	sorted := slices.Collect(maps.Keys(counts))
	for i := range sorted {
		sorted[i].Count = counts[sorted[i]]
	}
	slices.SortFunc(sorted, func(a, b Line) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Program, b.Program),
			cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Resource, b.Resource))
	})
	return sorted
}
