package controllers

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// thePolicies is a cluster with these policies.
type thePolicies struct {
	client.Client

	policies []v1alpha1.RebootPolicy
}

func (t thePolicies) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.RebootPolicyList).Items = t.policies
	return nil
}

// A pass reads the Nodes that were recorded: those of any event, and those that a pass requested.
func TestFleetReader_NotesNodes(t *testing.T) {
	f := &fleetReader{client: thePolicies{}}
	for name, noted := range map[string]func(context.Context, client.Object) []reconcile.Request{"of any event": f.noteNode, "of one that matters": f.policiesOf} {
		noted(t.Context(), new(nodeOfVersion(name, 1)))
		if _, ok := f.changed.Load(name); !ok {
			t.Errorf("a Node %s is not read anew", name)
		}
	}
}

// A policy may keep its control-plane nodes waiting for one that it does not select. When that node
// is deleted or Ready again, another event may not come.
func TestFleetReader_AControlPlaneNodeConcernsEachPolicy(t *testing.T) {
	masters := v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: "masters"}}
	masters.Spec.NodeSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"pool": "masters"}}
	f := &fleetReader{client: thePolicies{policies: []v1alpha1.RebootPolicy{masters}}}
	for label, want := range map[string]bool{plan.ControlPlaneLabels[0]: true, "pool": false} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "old", Labels: map[string]string{label: ""}}}
		if got := slices.Contains(f.policiesOf(t.Context(), node), request("masters")); got != want {
			t.Errorf("a Node with label %s is looked at by a policy that does not select it: %t, want %t", label, got, want)
		}
	}
}

// A node that two policies select counts towards the limits of both, and so affects the policies
// that share these limits.
func TestFleetReader_ANodeOfRivalsConcernsWhoSharesTheirLimits(t *testing.T) {
	one, other, sharing := v1alpha1.RebootPolicy{}, v1alpha1.RebootPolicy{}, v1alpha1.RebootPolicy{}
	one.Name, other.Name, sharing.Name = "one", "other", "sharing"
	sharing.Spec.NodeSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"pool": "gpu"}}
	sharing.Spec.Concurrency = &v1alpha1.Concurrency{Shared: "one"}
	f := &fleetReader{client: thePolicies{policies: []v1alpha1.RebootPolicy{one, other, sharing}}}
	got := f.policiesOf(t.Context(), new(nodeOfVersion("n1", 1)))
	for _, name := range []string{"one", "other", "sharing"} {
		if !slices.Contains(got, request(name)) {
			t.Errorf("%v, without %s", got, name)
		}
	}
}
