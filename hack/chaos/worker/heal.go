package worker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/judge/oracle"
)

const (
	// patience is the time within which everything must finish after the last fault. An eviction
	// that the API server left half done blocks other disruptions for two minutes.
	patience = 3 * time.Minute
	// calm is the wait before the clocks are moved forward, and calmer the wait between two moves.
	calm, calmer = 3 * time.Second, 1500 * time.Millisecond
	// retry is longer than any wait of an agent, and backOff longer than a manager waits after one
	// failure.
	retry, backOff = 31 * time.Second, 16 * time.Minute
)

// heal ends the faults that do not end by themselves, and waits until everything is done.
func (r *run) heal(o *Outcome) error {
	began := time.Now()
	if len(r.schedule.Windows) > 0 {
		r.wrong.Store(int64(time.Until(r.opening())))
	}
	if err := r.setClocks(); err != nil {
		return err
	}
	for _, replica := range r.worker.replicas {
		replica.line.Restore()
	}
	// A node that the administrator keeps cordoned takes a slot.
	r.admin.heal(r.ctx, r.schedule.Limit+len(r.admin.hasCordoned()))
	tick := began.Add(calm)
	for remaining := r.unfinished(); len(remaining) > 0; remaining = r.unfinished() {
		if err := r.check(); err != nil {
			return err
		}
		switch now := time.Now(); {
		case now.Sub(began) > patience:
			o.Violations = append(o.Violations, judge.Violation{At: now, Rule: judge.Convergence, How: strings.Join(remaining, "")})
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

// putOn moves the clocks forward, so that the run does not have to wait. It moves them only a
// little while a node is being rebooted, so that nothing times out.
func (r *run) putOn(tick int) error {
	switch {
	case slices.ContainsFunc(r.worker.witness.Present(), func(c judge.Change) bool { return c.Node != nil && attempted(c.Node) }):
		r.wrong.Add(int64(retry))
	case len(r.schedule.Windows) > 0:
		r.wrong.Add(int64(24 * time.Hour))
	default:
		r.wrong.Add(int64(tick) * int64(backOff))
	}
	if err := r.setClocks(); err != nil {
		return err
	}
	for _, name := range r.admin.policies {
		r.admin.patchPolicy(r.ctx, name, fmt.Sprintf(`{"metadata":{"annotations":{"chaos/tick":"%d"}}}`, tick))
	}
	return nil
}

// unfinished lists what is missing: each machine must have had its reboot, and no Node may show any
// trace of one.
func (r *run) unfinished() (remaining []string) {
	add := func(format string, args ...any) { remaining = append(remaining, "\n    "+fmt.Sprintf(format, args...)) }
	for _, h := range r.hosts {
		if problem := h.Unfinished(); problem != "" {
			add("machine %d, node %s: %s", h.number, h.node(), problem)
		}
	}
	for _, kind := range r.stillPlayed() {
		add("the operator has not coped with this yet: %s", kind)
	}
	admins, policies := r.admin.hasCordoned(), 0
	for _, change := range r.worker.witness.Present() {
		if p := change.Policy; p != nil {
			policies++
			for _, problem := range judge.UnsettledPolicy(p) {
				add("policy %s %s, limit %d, blocked %v", p.Name, problem, p.Status.Limit, p.Status.Blocked)
			}
		}
		if node := change.Node; node != nil && (node.Spec.Unschedulable != admins[node.Name] || attempted(node) || len(judge.Unsettled(node)) > 0) {
			add("node %s: unschedulable %t, taints %v, annotations %v, conditions %v", node.Name, node.Spec.Unschedulable, node.Spec.Taints, node.Annotations, node.Status.Conditions)
		}
	}
	if policies < len(r.admin.policies) {
		add("there are %d policies of %d", policies, len(r.admin.policies))
	}
	return remaining
}

// attempted reports whether a Node has an active grant, even if the agent aborted.
func attempted(node *corev1.Node) bool {
	grant, err := protocol.ParseGrant(node.Annotations)
	return err == nil && grant != nil && grant.State == protocol.GrantActive
}

// opening returns the next opening of the window some days ahead, far from any clock change.
func (r *run) opening() time.Time {
	far := r.schedule.Begins.AddDate(0, 0, 10)
	segments := oracle.Segments(r.schedule.Windows, nil, far, far.AddDate(0, 0, 2))
	open := slices.IndexFunc(segments, func(s oracle.Segment) bool { return s.Open })
	return segments[open].From
}
