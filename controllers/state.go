package controllers

import (
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/plan/underway"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

// state is the snapshot of one pass. After it was gathered, only its methods change it, so that the
// next plan of the same pass sees what was written.
type state struct {
	plan.Snapshot
	// index holds the position of each Node in the list, by name.
	index map[string]int
	// slotWaits reports whether a slot is being handed over, before which only few conditions and
	// markers are written. handedOver reports whether a slot was handed over in this pass.
	slotWaits, handedOver bool
	// listed reports whether the Nodes were listed live.
	listed bool
	// refused is the error of writes that single Nodes or the policy's finalizer refused. It does
	// not prevent anything else.
	refused error
	// unheld is the error of the write that should have added the finalizer to the policy, or to the
	// policy with its ledger. It is nil if both have it.
	unheld error
	// later is the delay of what was postponed, or 0.
	later time.Duration
}

// putOff records that something must be done after a delay, or nothing if it is 0.
func (s *state) putOff(later time.Duration) {
	if s.later == 0 || later > 0 && later < s.later {
		s.later = later
	}
}

// putOffUntil records that something must be done at a time, or nothing if it is zero.
func (s *state) putOffUntil(next, now time.Time) {
	if !next.IsZero() {
		// 10 ms are added because a pass that is too early would decide nothing.
		s.putOff(min(max(next.Sub(now), 0), farAhead) + 10*time.Millisecond)
	}
}

// fail records an error. It ignores nil.
func (s *state) fail(err error) { s.refused = errors.Join(s.refused, err) }

// handOver records whether a slot is being handed over.
func (s *state) handOver(does bool) { s.slotWaits, s.handedOver = does, s.handedOver || does }

// wrote stores the result of a write of the policy or of the one with its ledger.
func (s *state) wrote(policy *v1alpha1.RebootPolicy) {
	if policy.Name == s.Policy.Name {
		s.Policy = policy
	}
	s.Ledger = s.Ledger.Updated(policy)
}

// answered records the writes about granted reboots that the API server last refused, by node.
func (s *state) answered(refused map[string]underway.Refusal) { s.Refused = refused }

// halfOver reports whether a pass has used half of its time. A webhook that hangs takes at least
// ten seconds for each write of a Node, so the other half is reserved for ledger and status.
func (s *state) halfOver(now time.Time) bool { return now.Sub(s.Now) >= reconcileTimeout/2 }

// conflictPause returns the pause after a conflict on the policy.
func (s *state) conflictPause() time.Duration {
	if s.listed {
		return listPause
	}
	return conflictPause
}

// newState returns the state of a new pass with nodes in any order.
func newState(nodes []*record.Node) *state {
	return &state{Snapshot: plan.Snapshot{Nodes: nodes}, index: indexOf(nodes)}
}

// look builds the snapshot for a policy. Nil stands for the nodes without a policy.
func (s *state) look(policy *v1alpha1.RebootPolicy, policies []v1alpha1.RebootPolicy, now time.Time) {
	s.Snapshot = snapshot.Of(policy, policies, s.Nodes, now)
}

// indexOf returns the position of each node in a list, by name.
func indexOf(nodes []*record.Node) map[string]int {
	index := make(map[string]int, len(nodes))
	for i, n := range nodes {
		index[n.Name] = i
	}
	return index
}

// replace stores a newer version of a Node.
func (s *state) replace(node *corev1.Node) {
	if i, ok := s.index[node.Name]; ok {
		s.Nodes[i] = new(record.Of(node))
	}
}

// put is like replace, but adds a missing Node.
func (s *state) put(node *corev1.Node) {
	if _, ok := s.index[node.Name]; !ok {
		s.index[node.Name] = len(s.Nodes)
		s.Nodes = append(s.Nodes, nil)
	}
	s.replace(node)
}

// unread records that a Node could not be read live.
func (s *state) unread(name string) {
	if s.Unread == nil {
		s.Unread = map[string]bool{}
	}
	s.Unread[name] = true
}

// remove removes a Node that is gone.
func (s *state) remove(name string) {
	i, ok := s.index[name]
	if !ok {
		return
	}
	s.Nodes = slices.Delete(s.Nodes, i, i+1)
	s.index = indexOf(s.Nodes)
}
