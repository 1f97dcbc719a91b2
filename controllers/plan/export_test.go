package plan

import (
	"fmt"
	"slices"

	"k8s.io/utils/dump"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// AroundChecks runs every check on every node, and the checks that may end a granted reboot. It
// returns all data that checks see, before and after.
func AroundChecks(s Snapshot) (before, after string) {
	c := choose(s)
	if len(c.governed) > 0 {
		c.ahead = c.governed[0]
	}
	var granted []*tracker
	for _, r := range c.plan.UnderWay() {
		if r.Node != nil {
			granted = append(granted, &tracker{f: c.fleet, Reboot: r})
		}
	}
	before = lookedAt(c, granted)
	for _, check := range slices.Concat(inOrder, untilBegun) {
		for _, n := range c.governed {
			check.blocks(c, n)
		}
	}
	for _, t := range granted {
		t.withdrawal()
		t.hooksOf(v1alpha1.HooksBefore)
		t.hooksOf(v1alpha1.HooksAfter)
		if t.Rebooting() {
			t.times().Sent()
			t.times().BackSince()
		}
	}
	return before, lookedAt(c, granted)
}

// lookedAt prints a choice and what is known of granted reboots. Package dump cannot write a map
// whose keys are structs.
func lookedAt(c *choice, granted []*tracker) string {
	f := *c.fleet
	f.Governor.entries = nil
	all := []any{choice{fleet: &f, slots: c.slots, ahead: c.ahead, unfinished: c.unfinished}, fmt.Sprint(c.Governor.entries)}
	for _, t := range granted {
		all = append(all, t.Reboot)
	}
	return dump.ForHash(all)
}
