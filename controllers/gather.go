package controllers

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/window"
)

// livePage is how many Nodes one page of a live LIST holds; each is trimmed before the next page is read.
const livePage = 500

// state is the snapshot of one pass together with the Nodes it was read from. A write replaces a Node in it, so that
// the next plan of the same pass sees it.
type state struct {
	plan.Snapshot
	nodes []corev1.Node
	index map[string]int
}

func newState(nodes []corev1.Node) *state {
	s := &state{nodes: nodes, index: make(map[string]int, len(nodes))}
	for i := range nodes {
		s.index[nodes[i].Name] = i
	}
	return s
}

func (s *state) views() []plan.Node {
	views := make([]plan.Node, len(s.nodes))
	for i := range s.nodes {
		views[i] = plan.NodeOf(&s.nodes[i])
	}
	return views
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
	nodes := slices.DeleteFunc(s.nodes, func(n corev1.Node) bool { return n.Name == name })
	snapshot := s.Snapshot
	*s = *newState(nodes)
	s.Snapshot = snapshot
	s.Nodes = s.views()
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
	s.Now, s.Policy, s.Governor, s.Nodes = r.Clock.Now(), policy, plan.NewGovernor(policies), s.views()
	s.Window, s.WindowInvalid = windowAt(policy, s.Now)
	return s, nil
}

// windowAt resolves the policy's windows. What cannot be compiled is closed.
func windowAt(policy *v1alpha1.RebootPolicy, now time.Time) (window.State, string) {
	schedule, err := window.Compile(policy.Spec.Windows, policy.Spec.Blackouts)
	if err != nil {
		return window.State{}, err.Error()
	}
	return schedule.At(now), ""
}

func (r *RebootPolicyReconciler) policies(ctx context.Context) ([]v1alpha1.RebootPolicy, error) {
	var policies v1alpha1.RebootPolicyList
	if err := r.Client.List(ctx, &policies); err != nil {
		return nil, fmt.Errorf("listing policies: %w", err)
	}
	return policies.Items, nil
}

// nodesFor reads the nodes from the cache, but live the first time this process decides about a policy: a leader before
// it may have granted what the cache does not show yet.
func (r *RebootPolicyReconciler) nodesFor(ctx context.Context, policy *v1alpha1.RebootPolicy) ([]corev1.Node, error) {
	if r.adopted[policy.UID] {
		return r.cachedNodes(ctx)
	}
	nodes, err := r.liveNodes(ctx)
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

// liveNodes lists in pages of one consistent revision.
func (r *RebootPolicyReconciler) liveNodes(ctx context.Context) ([]corev1.Node, error) {
	var all []corev1.Node
	for token := ""; ; {
		var page corev1.NodeList
		if err := r.Live.List(ctx, &page, client.Limit(livePage), client.Continue(token)); err != nil {
			return nil, fmt.Errorf("listing nodes from the API server: %w", err)
		}
		for i := range page.Items {
			all = append(all, *trimNode(&page.Items[i]))
		}
		if token = page.Continue; token == "" {
			return all, nil
		}
	}
}
