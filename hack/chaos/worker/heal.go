package worker

import (
	"fmt"
	"strings"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/judge"
)

const (
	// patience is how long after the last fault all must be done. An eviction that the API server left half done, because its
	// client went away, keeps a disruption for two minutes from everybody else.
	patience = 3 * time.Minute
	// calm is how long it may take before time is put on, and calmer how long between.
	calm, calmer = 3 * time.Second, 1500 * time.Millisecond
	// retry is longer than an agent waits for anything; backOff longer than a manager does after one failure.
	retry, backOff = 31 * time.Second, 16 * time.Minute
)

// heal ends what does not end by itself, and waits until all is done.
func (r *run) heal(o *Outcome) error {
	began := time.Now()
	if r.schedule.Window != nil {
		open, err := r.opening()
		if err != nil {
			return err
		}
		r.clocks.offset.Store(int64(time.Until(open)))
	}
	if err := r.clocks.write(); err != nil {
		return err
	}
	for _, replica := range r.worker.replicas {
		replica.line.Restore(r.worker.life)
	}
	// A node that an administrator keeps cordoned takes a slot.
	r.admin.heal(r.ctx, r.schedule.Limit+len(r.admin.keepsCordoned()))
	tick := began.Add(calm)
	for left := r.unfinished(); len(left) > 0; left = r.unfinished() {
		if err := r.check(); err != nil {
			return err
		}
		switch now := time.Now(); {
		case now.Sub(began) > patience:
			o.Violations = append(o.Violations, judge.Violation{At: now, Rule: judge.Convergence, How: strings.Join(left, "")})
			o.Converged = now.Sub(began)
			return nil
		case now.After(tick):
			o.Ticks++
			tick = now.Add(calmer)
			if err := r.putOn(o.Ticks); err != nil {
				return err
			}
		}
		pause(r.ctx, look)
	}
	o.Converged = time.Since(began)
	return nil
}

// putOn is time that passes: what waits for a time need not be waited for. While a node is in an attempt it is little, so that
// nothing times out.
func (r *run) putOn(tick int) error {
	resting := true
	r.worker.world.read(func(w *world) {
		for _, node := range w.nodes {
			resting = resting && !attempted(node)
		}
	})
	switch {
	case !resting:
		r.clocks.offset.Add(int64(retry))
	case r.schedule.Window != nil:
		r.clocks.offset.Add(int64(24 * time.Hour))
	default:
		r.clocks.offset.Add(int64(tick) * int64(backOff))
	}
	if err := r.clocks.write(); err != nil {
		return err
	}
	for _, name := range r.admin.policies {
		r.admin.patchPolicy(r.ctx, name, fmt.Sprintf(`{"metadata":{"annotations":{"chaos/tick":"%d"}}}`, tick))
	}
	return nil
}

// unfinished states what is not done: each machine has its reboot, and each Node is as if nothing had been.
func (r *run) unfinished() (left []string) {
	add := func(format string, args ...any) { left = append(left, "\n    "+fmt.Sprintf(format, args...)) }
	for _, m := range r.machines {
		m.mu.Lock()
		if !m.gone && (m.needed || m.down) {
			add("machine %d, node %s: needs a reboot %t, going down %t, agent %t", m.number, m.name, m.needed, m.down, m.agent != nil)
		}
		m.mu.Unlock()
	}
	admins := r.admin.cordoned()
	r.worker.world.read(func(w *world) {
		for _, name := range r.admin.policies {
			switch p := w.policies[name]; {
			case p == nil:
				add("there is no policy %s", name)
			case p.DeletionTimestamp != nil || len(p.Status.Grants) > 0:
				add("policy %s: grants %v, limit %d, blocked %v, deleted %v", name, p.Status.Grants, p.Status.Limit, p.Status.Blocked, p.DeletionTimestamp)
			}
		}
		for name, node := range w.nodes {
			if !quiet(node, admins[name]) {
				add("node %s: unschedulable %t, taints %v, annotations %v, conditions %v", name, node.Spec.Unschedulable, node.Spec.Taints, node.Annotations, node.Status.Conditions)
			}
		}
	})
	return left
}

// opening is when the window is open next, some days on, far from any change of clocks.
func (r *run) opening() (time.Time, error) {
	w := r.schedule.Window
	start, err := time.Parse("15:04", w.Start)
	if err != nil {
		return time.Time{}, fmt.Errorf("reading the window: %w", err)
	}
	y, m, d := r.schedule.Begins.AddDate(0, 0, 10).Date()
	return time.Date(y, m, d, start.Hour(), start.Minute()+1, 0, 0, r.worker.zones[w.Zone]), nil
}
