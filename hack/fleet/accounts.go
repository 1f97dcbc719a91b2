package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
)

// Asked is what the operator's programs asked of the API server.
type Asked struct {
	// Writes are all requests that could change something, but for evictions, events and Leases; the most frequent first.
	Writes []Line
	// Reads are gets and lists, but for Leases.
	Reads []Line
	// Evictions, Events, Watches and Leases count requests of these kinds.
	Evictions, Events, Watches, Leases int
	// Refused counts requests of any kind, but evictions, that were answered with an error.
	Refused int
}

// Line counts requests of one kind by one of the operator's programs.
type Line struct {
	// Program is agent or manager.
	Program string
	// Verb and Resource state what was asked.
	Verb, Resource string
	// Count is how often.
	Count int
}

// Total adds lines up.
func Total(lines []Line) int {
	total := 0
	for _, l := range lines {
		total += l.Count
	}
	return total
}

// Work counts all but watches and what is about Leases.
func (a Asked) Work() int { return Total(a.Writes) + Total(a.Reads) + a.Evictions + a.Events }

// Account counts what the operator's programs asked; requests of others are left out.
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

// users are the operator's users. An agent acts as its Node, but it is the agent who authenticates.
var users = map[string]string{
	"system:serviceaccount:" + namespace + ":reboot-operator-agent":   agentProgram,
	"system:serviceaccount:" + namespace + ":reboot-operator-manager": managerProgram,
}

// ProgramOf is which of the operator's programs asked: agent or manager. Empty: neither.
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
