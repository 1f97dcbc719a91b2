package plan

import (
	"cmp"
	"slices"
)

// place is what decides where a candidate stands in the line.
type place struct {
	node *Node
	// down tells that the node is unavailable already, and guarded that its drain could only end by its time-out.
	down, guarded bool
}

// order sorts candidates: nodes that were never served since they need a reboot before those that were; by domain; nodes that are down already first, for they cost nobody anything; those whose drain
// could only end by its time-out last, for they hold a slot longest; then those that have waited longest, so that nobody
// starves; control planes last among equals; then by name. There may be thousands: what is the same for two is looked at once
// for each, and most of all names, which are long, where all else is equal.
func (f *fleet) order(candidates []*Node) {
	line := make([]place, len(candidates))
	for i, n := range candidates {
		line[i] = place{node: n, down: n.unavailable(), guarded: f.guarded(n)}
	}
	slices.SortFunc(line, f.comparePlaces)
	for i, p := range line {
		candidates[i] = p.node
	}
}

func (f *fleet) comparePlaces(a, b place) int {
	if c := compareBools(a.node.served(), b.node.served()); c != 0 {
		return c
	}
	if c := f.compareDomains(a.node, b.node); c != 0 {
		return c
	}
	if c := cmp.Or(compareBools(b.down, a.down), compareBools(a.guarded, b.guarded)); c != 0 {
		return c
	}
	if c := a.node.WaitsSince().Compare(b.node.WaitsSince()); c != 0 {
		return c
	}
	if c := compareBools(a.node.ControlPlane, b.node.ControlPlane); c != 0 {
		return c
	}
	return cmp.Compare(a.node.Name, b.node.Name)
}

func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
