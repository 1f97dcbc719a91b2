package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Figures are what worlds came to.
type Figures struct {
	Seeds, Nodes, Reboots, Violations int
	// Lasted is virtual time, CPU what it took; zero where nobody has measured it.
	Lasted, CPU time.Duration
	Counts      map[string]int
}

// Add takes one world in.
func (f *Figures) Add(s Script, r Result) {
	f.merge(&Figures{
		Seeds: 1, Nodes: len(s.Nodes), Reboots: r.Reboots, Violations: len(r.Violations), Lasted: r.Lasted, Counts: r.Faults,
	})
}

// merge adds what others came to.
func (f *Figures) merge(o *Figures) {
	f.Seeds, f.Nodes, f.Reboots, f.Violations = f.Seeds+o.Seeds, f.Nodes+o.Nodes, f.Reboots+o.Reboots, f.Violations+o.Violations
	f.Lasted, f.CPU = f.Lasted+o.Lasted, f.CPU+o.CPU
	if f.Counts == nil {
		f.Counts = map[string]int{}
	}
	for what, n := range o.Counts {
		f.Counts[what] += n
	}
}

// traffic is no fault.
var traffic = []string{"requests", "events"}

// String is two tables in Markdown.
func (f *Figures) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "| seeds | nodes | virtual time | CPU time | reboots | requests | faults | violations |\n|---|---|---|---|---|---|---|---|\n")
	faults := 0
	for what, n := range f.Counts {
		if !slices.Contains(traffic, what) {
			faults += n
		}
	}
	fmt.Fprintf(&text, "| %d | %d | %.0f weeks | %.0f min | %d | %d | %d | %d |\n", f.Seeds, f.Nodes, f.Lasted.Hours()/week.Hours(), f.CPU.Minutes(), f.Reboots, f.Counts["requests"], faults, f.Violations)
	fmt.Fprintf(&text, "\n| fault, or what else happened | times |\n|---|---|\n")
	kinds := slices.SortedFunc(maps.Keys(f.Counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(f.Counts[b], f.Counts[a]), cmp.Compare(a, b))
	})
	for _, what := range kinds {
		if !slices.Contains(traffic, what) {
			fmt.Fprintf(&text, "| %s | %d |\n", what, f.Counts[what])
		}
	}
	return text.String()
}
