package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/document"
)

// Figures sums up the results of several worlds.
type Figures struct {
	Seeds, Nodes, Reboots, Violations int
	// Lasted is the virtual time, and CPU the CPU time it took, or zero if nobody measured it.
	Lasted, CPU time.Duration
	Counts      map[string]int
}

// Add adds the result of one world.
func (f *Figures) Add(s Script, r Result) {
	f.Seeds, f.Nodes, f.Reboots, f.Violations = f.Seeds+1, f.Nodes+len(s.Nodes), f.Reboots+r.Reboots, f.Violations+len(r.Violations)
	f.Lasted += r.Lasted
	if f.Counts == nil {
		f.Counts = map[string]int{}
	}
	for kind, n := range r.Faults {
		f.Counts[kind] += n
	}
}

// requests is counted together with the faults, but is not a fault.
const requests = "requests"

// largeWorld is the number of nodes above which a world is large. Its faults are those of small worlds.
const largeWorld = 1000

// String returns two tables in Markdown, or only the first one for large worlds.
func (f *Figures) String() string {
	faults := 0
	var times [][]string
	kinds := slices.SortedFunc(maps.Keys(f.Counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(f.Counts[b], f.Counts[a]), cmp.Compare(a, b))
	})
	for _, kind := range kinds {
		if kind != requests {
			faults += f.Counts[kind]
			times = append(times, []string{kind, strconv.Itoa(f.Counts[kind])})
		}
	}
	weeks, minutes := fmt.Sprintf("%.0f weeks", f.Lasted.Hours()/week.Hours()), fmt.Sprintf("%.0f min", f.CPU.Minutes())
	all := []string{
		strconv.Itoa(f.Seeds), strconv.Itoa(f.Nodes), weeks, minutes, strconv.Itoa(f.Reboots), strconv.Itoa(f.Counts[requests]),
		strconv.Itoa(faults), strconv.Itoa(f.Violations),
	}
	text := document.Rows([]string{"seeds", "nodes", "virtual time", "CPU time", "reboots", "requests", "faults", "violations"}, [][]string{all})
	if f.Nodes > largeWorld*f.Seeds {
		return text
	}
	return text + "\n" + document.Rows([]string{"fault, or what else happened", "times"}, times)
}
