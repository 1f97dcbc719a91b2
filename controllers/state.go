package controllers

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

// state is the snapshot of one pass. Once it is gathered, it changes by its methods alone: the next plan of the same pass sees what was
// written.
type state struct {
	plan.Snapshot
	// index is where each of the Nodes is in that list, by its name.
	index map[string]int
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

// putOffUntil notes that something may be done at an instant; zero: nothing.
func (s *state) putOffUntil(next, now time.Time) {
	if !next.IsZero() {
		// 10 ms are added so that the pass is not early: it would decide nothing.
		s.putOff(min(max(next.Sub(now), 0), farAhead) + 10*time.Millisecond)
	}
}

// fail notes what could not be done; nil: it could.
func (s *state) fail(err error) { s.refused = errors.Join(s.refused, err) }

// handOver notes whether a slot is being handed over.
func (s *state) handOver(does bool) { s.slotWaits, s.handedOver = does, s.handedOver || does }

// wrote puts what a write has made of a policy into the state: of the policy itself, or of the one with its ledger.
func (s *state) wrote(policy *v1alpha1.RebootPolicy) {
	if policy.Name == s.Policy.Name {
		s.Policy = policy
	} else {
		s.Ledger = policy
	}
}

// answered notes which writes about granted reboots the API server has refused last, by node.
func (s *state) answered(refused map[string]plan.Refusal) { s.Refused = refused }

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
	return &state{Snapshot: plan.Snapshot{Nodes: nodes}, index: indexOf(nodes)}
}

// look takes the snapshot for a policy; nil is for the nodes that none governs.
func (s *state) look(policy *v1alpha1.RebootPolicy, policies []v1alpha1.RebootPolicy, now time.Time) {
	s.Snapshot = snapshot.Of(policy, policies, s.Nodes, now)
}

// indexOf returns where each node is in a list, by its name.
func indexOf(nodes []*plan.Node) map[string]int {
	index := make(map[string]int, len(nodes))
	for i, n := range nodes {
		index[n.Name] = i
	}
	return index
}

// replace puts a newer reading of a Node into the state.
func (s *state) replace(node *corev1.Node) {
	if i, ok := s.index[node.Name]; ok {
		s.Nodes[i] = new(plan.NodeOf(node))
	}
}

// put is replace for a Node that need not be in the state.
func (s *state) put(node *corev1.Node) {
	if _, ok := s.index[node.Name]; !ok {
		s.index[node.Name] = len(s.Nodes)
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
	i, ok := s.index[name]
	if !ok {
		return
	}
	s.Nodes = slices.Delete(s.Nodes, i, i+1)
	s.index = indexOf(s.Nodes)
}
