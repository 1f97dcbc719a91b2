package controllers

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
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
			t.Errorf("a Node %s is not read again", name)
		}
	}
}

// A policy may keep its control-plane nodes waiting for one that it does not select. When that node
// is deleted or Ready again, another event may not come.
func TestFleetReader_AControlPlaneNodeConcernsEachPolicy(t *testing.T) {
	masters := v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: "masters"}}
	masters.Spec.NodeSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"pool": "masters"}}
	f := &fleetReader{client: thePolicies{policies: []v1alpha1.RebootPolicy{masters}}}
	for label, want := range map[string]bool{record.ControlPlaneLabels[0]: true, "pool": false} {
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

// oneNode is a cluster with one Node.
type oneNode struct {
	thePolicies

	node corev1.Node
}

func (o oneNode) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	o.node.DeepCopyInto(object.(*corev1.Node))
	return nil
}

// If a node moves to another policy during its reboot, the limit counts it until its former policy
// has released the entry. That may be long after the last write of the Node.
func TestFleetReader_AnEntryOfAFormerPolicyConcernsWhoSharesTheLimit(t *testing.T) {
	former, workers, sharing := v1alpha1.RebootPolicy{}, v1alpha1.RebootPolicy{}, v1alpha1.RebootPolicy{}
	former.Name, workers.Name, sharing.Name = "former", "workers", "sharing"
	former.Spec.NodeSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"version": "0"}}
	sharing.Spec.NodeSelector = &v1alpha1.LabelSelector{MatchLabels: map[string]string{"pool": "gpu"}}
	sharing.Spec.Concurrency = &v1alpha1.Concurrency{Shared: "workers"}
	before := former.DeepCopy()
	before.Status.Grants = []v1alpha1.LedgerEntry{{Node: "n1", Seq: 1}}
	f := &fleetReader{client: oneNode{thePolicies{policies: []v1alpha1.RebootPolicy{former, workers, sharing}}, nodeOfVersion("n1", 1)}}
	got := f.waitForSlot(t.Context(), before, &former)
	slices.Sort(got)
	if want := []string{"sharing", "workers"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A policy that has released an entry plans again by itself.
func TestFleetReader_AFreedSlotDoesNotConcernThePolicyThatFreedIt(t *testing.T) {
	one := v1alpha1.RebootPolicy{}
	one.Name = "one"
	before := one.DeepCopy()
	before.Status.Grants = []v1alpha1.LedgerEntry{{Node: "n1", Seq: 1}}
	f := &fleetReader{client: oneNode{thePolicies{policies: []v1alpha1.RebootPolicy{one}}, nodeOfVersion("n1", 1)}}
	if got := f.waitForSlot(t.Context(), before, &one); len(got) > 0 {
		t.Errorf("queued %v", got)
	}
}

// brokenCache is a cluster whose policies cannot be listed for a while, and whose Nodes cannot be
// read.
type brokenCache struct {
	thePolicies

	failures *int
}

func (b brokenCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if *b.failures--; *b.failures >= 0 {
		return errBroken
	}
	return b.thePolicies.List(ctx, list, options...)
}

func (b brokenCache) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return errBroken
}

var errBroken = errors.New("broken cache")

func TestFleetReader_NoEventIsLostIfPoliciesCannotBeListed(t *testing.T) {
	type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]
	one, two := v1alpha1.RebootPolicy{}, v1alpha1.RebootPolicy{}
	one.Name, two.Name = "one", "two"
	two.Spec.Concurrency = &v1alpha1.Concurrency{Shared: "one"}
	before := one.DeepCopy()
	before.Status.Grants = []v1alpha1.LedgerEntry{{Node: "n1", Seq: 1, Policy: "two"}}
	add := func(queue requests, all []reconcile.Request) {
		for _, r := range all {
			queue.Add(r)
		}
	}
	cases := map[string]func(context.Context, *fleetReader, requests){
		"a changed policy": func(ctx context.Context, f *fleetReader, queue requests) { add(queue, f.allPolicies(ctx, &one)) },
		"a changed node": func(ctx context.Context, f *fleetReader, queue requests) {
			add(queue, f.policiesOf(ctx, new(nodeOfVersion("n1", 1))))
		},
		"a freed slot": func(ctx context.Context, f *fleetReader, queue requests) {
			f.slotFreed().Update(ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: &one}, queue)
		},
		"an agent's pod whose node cannot be read either": func(ctx context.Context, f *fleetReader, queue requests) {
			f.agentChanged(ctx, &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n1"}}, queue)
		},
	}
	for name, happen := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fleetReader{client: brokenCache{thePolicies{policies: []v1alpha1.RebootPolicy{one, two}}, new(3)}}
				queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
				defer queue.ShutDown()
				happen(t.Context(), f, queue)
				queued := map[string]bool{}
				for queue.Len() > 0 {
					r, _ := queue.Get()
					queued[r.Name] = true
				}
				if !queued["one"] || !queued["two"] {
					t.Errorf("queued %v", queued)
				}
			})
		})
	}
}

func TestFleetReader_StopsListingPoliciesWithTheManager(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &fleetReader{client: brokenCache{failures: new(1000)}}
	if got := f.policiesOf(ctx, new(nodeOfVersion("n1", 1))); len(got) > 1 {
		t.Errorf("queued %v", got)
	}
}
