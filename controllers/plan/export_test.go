package plan

import (
	"slices"

	"k8s.io/utils/dump"
)

// AroundChecks runs every check on every node, and the checks that may end a granted reboot. It
// returns all data that checks see, before and after.
func AroundChecks(s Snapshot) (before, after string) {
	c := choose(s)
	if len(c.active) > 0 {
		c.ahead = c.active[0]
	}
	before = lookedAt(c)
	for _, check := range slices.Concat(inOrder, untilBegun) {
		for _, n := range c.active {
			check.blocks(c, n)
		}
	}
	for _, r := range c.plan.UnderWay() {
		c.reboot(r.Entry)
	}
	return before, lookedAt(c)
}

// lookedAt prints a choice and what is known of granted reboots.
func lookedAt(c *choice) string {
	seen := *c
	seen.plan, seen.waiting = Plan{}, nil
	all := []any{seen}
	for _, r := range c.plan.UnderWay() {
		all = append(all, r)
	}
	return dump.ForHash(all)
}
