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
	d := Begin(s)
	d.Complete()
	v := view{fleet: d.f, slots: d.slots}
	if len(d.f.governed) > 0 {
		v.ahead = d.f.governed[0]
	}
	var granted []*tracker
	for _, r := range d.plan.UnderWay() {
		if r.Node != nil {
			granted = append(granted, &tracker{f: d.f, Reboot: r})
		}
	}
	before = lookedAt(v, granted)
	for _, c := range slices.Concat(inOrder, untilBegun) {
		for _, n := range d.f.governed {
			c.blocks(v, n)
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
	return before, lookedAt(v, granted)
}

// lookedAt prints a view and what is known of granted reboots. Package dump cannot write a map
// whose keys are structs.
func lookedAt(v view, granted []*tracker) string {
	f := *v.fleet
	f.Governor.entries = nil
	all := []any{view{fleet: &f, slots: v.slots, ahead: v.ahead, unfinished: v.unfinished}, fmt.Sprint(v.Governor.entries)}
	for _, t := range granted {
		all = append(all, t.Reboot)
	}
	return dump.ForHash(all)
}
