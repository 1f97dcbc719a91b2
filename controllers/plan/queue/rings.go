package queue

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
)

// Rings are the rings of spec.rings. Nodes that none of them selects form one more ring, the last.
type Rings struct {
	// Order are the rings of the spec.
	Order []v1alpha1.Ring

	selectors []labels.Selector
	// back holds the time when each node was back in service, from the policy's history.
	back map[string]time.Time
}

// RingsOf reads the rings of a policy. The error names the selector that cannot be evaluated.
func RingsOf(policy *v1alpha1.RebootPolicy, now time.Time) (Rings, error) {
	r := Rings{back: map[string]time.Time{}}
	for _, ring := range policy.Spec.Rings {
		selector, err := ring.NodeSelector.Selector()
		if err != nil {
			return Rings{}, fmt.Errorf("spec.rings, ring %s: %w", ring.Name, err)
		}
		r.Order, r.selectors = append(r.Order, ring), append(r.selectors, selector)
	}
	if len(r.Order) == 0 {
		return r, nil
	}
	for past := range record.History(policy, now) {
		if past.Result == v1alpha1.RebootSucceeded {
			r.back[past.Node] = past.EndedAt.Time
		}
	}
	return r, nil
}

// Of returns the number of a node's ring, from 0. A deleted node is in the last one.
func (r Rings) Of(n *record.Node) int {
	if n == nil {
		return len(r.Order)
	}
	for i, selector := range r.selectors {
		if selector.Matches(labels.Set(n.Labels)) {
			return i
		}
	}
	return len(r.Order)
}

// Name returns the name of a node's ring, or "" if it is in none.
func (r Rings) Name(n *record.Node) string {
	if ring := r.Of(n); ring < len(r.Order) {
		return r.Order[ring].Name
	}
	return ""
}

// Soak returns how long each rebooted node of a ring must be back in service before a later ring
// starts.
func (r Rings) Soak(ring int) time.Duration {
	if ring >= len(r.Order) {
		return 0
	}
	return r.Order[ring].SoakOrDefault()
}

// Waited reports whether other nodes wait for those of a ring.
func (r Rings) Waited(ring int) bool { return ring < len(r.Order) }

// Count returns the number of nodes in each ring.
func (r Rings) Count(nodes []*record.Node) []int {
	members := make([]int, len(r.Order)+1)
	if len(r.Order) == 0 {
		return members
	}
	for _, n := range nodes {
		members[r.Of(n)]++
	}
	return members
}

// Holds reports whether a node may block later rings although it is at rest.
func (r Rings) Holds(n *record.Node, now time.Time) bool {
	if len(r.Order) == 0 || r.Soak(r.Of(n)) == 0 {
		return false
	}
	until, _ := r.Soaks(n)
	return n.Incredible || now.Before(until)
}

// backAt returns when the node was back in service after its last granted reboot, from its own
// record or else from the history. It returns zero if neither has one.
func (r Rings) backAt(n *record.Node) time.Time {
	if g := n.Grant; g != nil && g.State == protocol.GrantFinished {
		return g.At.Time
	}
	return r.back[n.Name]
}

// Soaks returns until when the node blocks later rings after its reboot, and whether it went down
// during the soak and is still not Ready. A soak starts over if the node was not Ready in between.
// Because a Node shows only its last transition, earlier restarts of the soak are not visible, so
// an interruption counts until twice the soak has passed since the reboot.
func (r Rings) Soaks(n *record.Node) (until time.Time, down bool) {
	soak := r.Soak(r.Of(n))
	if soak == 0 {
		return time.Time{}, false
	}
	back := r.backAt(n)
	if back.IsZero() {
		return time.Time{}, false
	}
	return Soaks(n, back, soak)
}

// Soaks returns until when a node soaks after it came back, and whether it is down.
func Soaks(n *record.Node, back time.Time, soak time.Duration) (until time.Time, down bool) {
	if n.ReadySince.After(back) && n.ReadySince.Before(back.Add(2*soak)) {
		return n.ReadySince.Add(soak), !n.Ready
	}
	return back.Add(soak), false
}

// Split groups nodes by ring.
func (r Rings) Split(nodes []*record.Node) [][]*record.Node {
	rings := make([][]*record.Node, len(r.Order)+1)
	for _, n := range nodes {
		ring := r.Of(n)
		rings[ring] = append(rings[ring], n)
	}
	return rings
}
