package timeline

import (
	"slices"
	"time"
)

// Run is one reboot of one node: when each phase began. Zero: not yet.
type Run struct {
	Node string
	// Granted is when its turn came.
	Granted time.Time
	// Drain is when it was cordoned.
	Drain time.Time
	// Reboot is the point of no return.
	Reboot time.Time
	// Up is when it was Ready on a new boot ID.
	Up time.Time
	// Done is when it was back in service.
	Done time.Time
}

// Phases are how long each phase of a run took.
type Phases struct{ Drain, Reboot, Settle time.Duration }

// Phases are how long each phase of a finished run took.
func (r Run) Phases() Phases {
	return Phases{Drain: r.Reboot.Sub(r.Drain), Reboot: r.Up.Sub(r.Reboot), Settle: r.Done.Sub(r.Up)}
}

// record notes when a phase begins. A phase that one revision skips over began with the next one that is seen; a node
// that falls back, as after an abort, begins the phase anew.
func (t *Timeline) record(at time.Time, n *track) {
	r := &n.run
	phases := []*time.Time{&r.Granted, &r.Drain, &r.Reboot, &r.Up, &r.Done}
	states := []State{Waiting, Granted, Draining, Rebooting, Settling, Back}
	reached := slices.Index(states, n.view.State)
	if reached < 0 || n.view.State == Back && r.Granted.IsZero() {
		return
	}
	for i, began := range phases {
		switch {
		case i >= reached:
			*began = time.Time{}
		case began.IsZero():
			*began = at
		}
	}
	if n.view.State == Back {
		t.runs = append(t.runs, *r)
		*r = Run{Node: r.Node}
	}
}
