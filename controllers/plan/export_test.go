package plan

import (
	"slices"

	"k8s.io/utils/dump"
)

// AroundChecks is all that the checks look at after the plan of a snapshot. Before each of them has looked at each node, and after
// that.
func AroundChecks(s Snapshot) (before, after string) {
	d := Begin(s)
	d.Complete()
	v := view{fleet: d.f, slots: d.slots}
	if len(d.f.governed) > 0 {
		v.ahead = d.f.governed[0]
	}
	before = dump.ForHash(v)
	for _, c := range slices.Concat(inOrder, untilBegun) {
		for _, n := range d.f.governed {
			c.blocks(v, n)
		}
	}
	return before, dump.ForHash(v)
}
