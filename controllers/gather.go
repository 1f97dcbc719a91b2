package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

// state is the snapshot of one pass together with the Nodes it was read from. A write replaces a Node in it, so that
// the next plan of the same pass sees it.
type state struct {
	plan.Snapshot
	nodes []corev1.Node
	index map[string]int
	// later is after how long what was put off may be done; 0: nothing was.
	later time.Duration
}

// putOff notes that something may be done after a while; 0: nothing.
func (s *state) putOff(later time.Duration) {
	if s.later == 0 || later > 0 && later < s.later {
		s.later = later
	}
}

func newState(nodes []corev1.Node) *state {
	s := &state{nodes: nodes, index: make(map[string]int, len(nodes))}
	for i := range nodes {
		s.index[nodes[i].Name] = i
	}
	return s
}

// replace puts a newer reading of a Node into the state.
func (s *state) replace(node *corev1.Node) {
	if i, ok := s.index[node.Name]; ok {
		s.nodes[i] = *node
		s.Nodes[i] = plan.NodeOf(node)
	}
}

// remove takes a Node out that is gone.
func (s *state) remove(name string) {
	before := *s
	*s = *newState(slices.DeleteFunc(s.nodes, func(n corev1.Node) bool { return n.Name == name }))
	s.Snapshot, s.later = before.Snapshot, before.later
	s.Nodes = snapshot.Views(s.nodes)
}

// gather reads everything a decision about the policy looks at; nil when the policy is gone.
func (r *RebootPolicyReconciler) gather(ctx context.Context, name string) (*state, error) {
	policies, err := r.policies(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(policies, func(p v1alpha1.RebootPolicy) bool { return p.Name == name })
	if i < 0 {
		forget(name)
		return nil, nil
	}
	policy := policies[i].DeepCopy()
	nodes, err := r.nodesFor(ctx, policy)
	if err != nil {
		return nil, err
	}
	s := newState(nodes)
	s.Snapshot = snapshot.Of(policy, policies, snapshot.Views(nodes), r.Clock.Now())
	s.Gates = r.gatesSaid(policy)
	return s, nil
}

func (r *RebootPolicyReconciler) policies(ctx context.Context) ([]v1alpha1.RebootPolicy, error) {
	return snapshot.Policies(ctx, r.Client)
}

// nodesFor reads the nodes from the cache, but live the first time this process decides about a policy: a leader before
// it may have granted what the cache does not show yet.
func (r *RebootPolicyReconciler) nodesFor(ctx context.Context, policy *v1alpha1.RebootPolicy) ([]corev1.Node, error) {
	if r.adopted[policy.UID] {
		return r.cachedNodes(ctx)
	}
	nodes, err := snapshot.Nodes(ctx, r.Live)
	if err == nil {
		r.adopted[policy.UID] = true
	}
	return nodes, err
}

func (r *RebootPolicyReconciler) cachedNodes(ctx context.Context) ([]corev1.Node, error) {
	var nodes corev1.NodeList
	if err := r.Client.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	return nodes.Items, nil
}
