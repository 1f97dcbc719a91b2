package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// DeadlinesHealth sums up the deadlines of a policy's nodes.
type DeadlinesHealth struct {
	// Near is the number of nodes that have used three quarters of their time, and Passed the
	// number of nodes past their deadline.
	Near, Passed int32
	// Reason and Message are those of condition DeadlineNear.
	Reason  v1alpha1.Reason
	Message string
	// Next is the time when the next deadline comes near or passes, or zero. PassedAt is the latest
	// deadline that has passed, or zero.
	Next, PassedAt time.Time
}

// maxDeadlines is the number of nodes that condition DeadlineNear names.
const maxDeadlines = 3

// Deadlines returns the content of condition DeadlineNear for the nodes of a policy, or nil if it
// has no deadline. Times are shown in the zone.
func Deadlines(policy *v1alpha1.RebootPolicy, nodes []*record.Node, now time.Time, zone *time.Location) *DeadlinesHealth {
	deadline := policy.Spec.Deadline
	if deadline == nil {
		return nil
	}
	type dated struct {
		name string
		due  time.Time
	}
	var listed []dated
	r := &DeadlinesHealth{Reason: v1alpha1.ReasonInTime, Message: "no node has needed a reboot for three quarters of spec.deadline"}
	for _, n := range nodes {
		due := record.DueAt(policy, n)
		if due.IsZero() {
			continue
		}
		switch near := due.Add(-deadline.Duration / 4); {
		case now.Before(near):
			r.Next = timing.Earliest(r.Next, near)
			continue
		case now.Before(due):
			r.Next = timing.Earliest(r.Next, due)
			r.Near++
		default:
			r.Passed++
			r.PassedAt = timing.Latest(r.PassedAt, due)
		}
		listed = append(listed, dated{n.Name, due})
	}
	if len(listed) == 0 {
		return r
	}
	slices.SortFunc(listed, func(a, b dated) int { return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.name, b.name)) })
	r.Reason, r.Message = v1alpha1.ReasonDeadlineNear, message.Count(int(r.Near), "node", "nodes")+" close to the deadline"
	if r.Passed > 0 {
		r.Reason = v1alpha1.ReasonDeadlinePassed
		r.Message = fmt.Sprintf("%s past the deadline, %d close to it", message.Count(int(r.Passed), "node", "nodes"), r.Near)
	}
	r.Message += ": " + message.List(listed, maxDeadlines, func(n dated) string {
		if now.Before(n.due) {
			return n.name + " by " + timing.InstantIn(n.due, zone)
		}
		return n.name + " since " + timing.InstantIn(n.due, zone)
	})
	return r
}
