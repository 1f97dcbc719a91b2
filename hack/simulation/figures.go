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

// Summary returns a table of the sums in Markdown.
func (f *Figures) Summary() string {
	faults := -f.Counts[requests]
	for _, n := range f.Counts {
		faults += n
	}
	weeks, minutes := fmt.Sprintf("%.0f weeks", f.Lasted.Hours()/week.Hours()), fmt.Sprintf("%.0f min", f.CPU.Minutes())
	return document.Rows([]string{"seeds", "nodes", "virtual time", "CPU time", "reboots", "requests", "faults", "violations"}, [][]string{{
		strconv.Itoa(f.Seeds), strconv.Itoa(f.Nodes), weeks, minutes, strconv.Itoa(f.Reboots), strconv.Itoa(f.Counts[requests]),
		strconv.Itoa(faults), strconv.Itoa(f.Violations),
	}})
}

// String returns the summary, and a table of how often each fault struck.
func (f *Figures) String() string {
	kinds := slices.SortedFunc(maps.Keys(f.Counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(f.Counts[b], f.Counts[a]), cmp.Compare(a, b))
	})
	var times [][]string
	for _, kind := range kinds {
		if kind != requests {
			times = append(times, []string{kind, strconv.Itoa(f.Counts[kind])})
		}
	}
	return f.Summary() + "\n" + document.Rows([]string{"fault, or what else happened", "times"}, times)
}
