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
	// All are requests of every kind, the most frequent first.
	All []Line
	// Writes are all requests that could change something, but for evictions, events and Leases; the most frequent first.
	Writes []Line
	// Reads are gets and lists, but for Leases.
	Reads []Line
	// Evictions, Events and Watches count requests of these kinds.
	Evictions, Events, Watches int
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

// Account counts what the operator's programs asked; requests of others are left out.
func Account(requests []embedded.Request) Asked {
	var asked Asked
	all, writes, reads := map[Line]int{}, map[Line]int{}, map[Line]int{}
	for _, r := range requests {
		program, ours := users[r.User]
		if !ours {
			continue
		}
		line := Line{Program: program, Verb: r.Verb, Resource: r.Resource}
		all[line]++
		if r.Code >= 400 && r.Resource != evictions {
			asked.Refused++
		}
		switch {
		case r.Resource == evictions:
			asked.Evictions++
		case r.Resource == "events":
			asked.Events++
		case r.Resource == "leases":
		case r.Verb == "watch":
			asked.Watches++
		case r.IsWrite():
			writes[line]++
		default:
			line.Resource, _, _ = strings.Cut(line.Resource, "?")
			reads[line]++
		}
	}
	asked.All, asked.Writes, asked.Reads = lines(all), lines(writes), lines(reads)
	return asked
}

const evictions = "pods/eviction"

// users are the operator's users. An agent acts as its Node, but it is the agent who authenticates.
var users = map[string]string{
	"system:serviceaccount:" + namespace + ":reboot-operator-agent":   agentProgram,
	"system:serviceaccount:" + namespace + ":reboot-operator-manager": managerProgram,
}

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
