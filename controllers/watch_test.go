package controllers

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// noPolicies is a cluster without policies.
type noPolicies struct{ client.Client }

func (noPolicies) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*v1alpha1.RebootPolicyList).Items = nil
	return nil
}

// A pass reads the Nodes that were noted: those of any event, and those for which it was asked for.
func TestFleetReader_NotesNodes(t *testing.T) {
	f := &fleetReader{client: noPolicies{}}
	for name, noted := range map[string]func(context.Context, client.Object) []reconcile.Request{"of any event": f.noteNode, "of one that matters": f.policiesOf} {
		noted(t.Context(), new(nodeOfVersion(name, 1)))
		if _, ok := f.changed.Load(name); !ok {
			t.Errorf("a Node %s is not read anew", name)
		}
	}
}
