package plan

import (
	"cmp"
	"slices"
)

// order sorts candidates: by domain; nodes that are down already first, for they cost nobody anything; those whose drain
// could only end by its time-out last, for they hold a slot longest; then those that have waited longest, so that nobody
// starves; control planes last among equals; then by name.
func (f *fleet) order(candidates []*Node) {
	slices.SortStableFunc(candidates, func(a, b *Node) int {
		return cmp.Or(
			f.compareDomains(a, b),
			compareBools(b.unavailable(), a.unavailable()),
			compareBools(f.guarded(a), f.guarded(b)),
			a.RequiredSince.Compare(b.RequiredSince),
			compareBools(a.ControlPlane, b.ControlPlane),
			cmp.Compare(a.Name, b.Name),
		)
	})
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
