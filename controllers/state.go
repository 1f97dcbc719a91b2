package controllers

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

// state is the snapshot of one pass. A write replaces a node in it, so that the next plan of the same pass sees it.
type state struct {
	plan.Snapshot
	// slotWaits reports that a slot is being handed over: few conditions and markers are written before that. handedOver: one was, in this
	// pass.
	slotWaits, handedOver bool
	// listed reports that the Nodes were listed live.
	listed bool
	// refused is what single Nodes did not take, or the policy its finalizer. It keeps nothing else from being done.
	refused error
	// later is after how long what was put off may be done; 0: nothing was.
	later time.Duration
}

// putOff notes that something may be done after a while; 0: nothing.
func (s *state) putOff(later time.Duration) {
	if s.later == 0 || later > 0 && later < s.later {
		s.later = later
	}
}

// delay is how long to wait until the next instant, or for what was put off; 0 means until something changes.
func (s *state) delay(now, next time.Time) time.Duration {
	if next.IsZero() {
		return s.later
	}
	// 10 ms are added so that the pass is not early: it would decide nothing.
	until := min(max(next.Sub(now), 0), farAhead) + 10*time.Millisecond
	if s.later > 0 {
		return min(until, s.later)
	}
	return until
}

// halfOver reports whether a pass has spent half of its time. A webhook that hangs takes ten seconds and more from each write of a Node: the
// other half is for ledger and status.
func (s *state) halfOver(now time.Time) bool { return now.Sub(s.Now) >= reconcileTimeout/2 }

// conflictPause is how long to wait after another program's write to the policy.
func (s *state) conflictPause() time.Duration {
	if s.listed {
		return listPause
	}
	return conflictPause
}

// newState begins a pass with nodes in any order.
func newState(nodes []*plan.Node) *state {
	return &state{Snapshot: plan.Snapshot{Nodes: nodes, Index: plan.IndexOf(nodes)}}
}

// look takes the snapshot for a policy; nil is for the nodes that none governs.
func (s *state) look(policy *v1alpha1.RebootPolicy, policies []v1alpha1.RebootPolicy, now time.Time) {
	index := s.Index
	s.Snapshot = snapshot.Of(policy, policies, s.Nodes, now)
	s.Index = index
}

// replace puts a newer reading of a Node into the state.
func (s *state) replace(node *corev1.Node) {
	if i, ok := s.Index[node.Name]; ok {
		s.Nodes[i] = new(plan.NodeOf(node))
	}
}

// put is replace for a Node that need not be in the state.
func (s *state) put(node *corev1.Node) {
	if _, ok := s.Index[node.Name]; !ok {
		s.Index[node.Name] = len(s.Nodes)
		s.Nodes = append(s.Nodes, nil)
	}
	s.replace(node)
}

// unread notes that a Node could not be read live.
func (s *state) unread(name string) {
	if s.Unread == nil {
		s.Unread = map[string]bool{}
	}
	s.Unread[name] = true
}

// remove takes a Node out that is gone.
func (s *state) remove(name string) {
	i, ok := s.Index[name]
	if !ok {
		return
	}
	s.Nodes = slices.Delete(s.Nodes, i, i+1)
	s.Index = plan.IndexOf(s.Nodes)
}
