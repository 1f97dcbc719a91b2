package controllers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
	"github.com/reboot-operator/reboot-operator/controllers/reading"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

// fleetReader reads policies, Nodes and the agents' pods from the cache, or live if the cache may
// be outdated.
type fleetReader struct {
	client client.Client
	live   client.Reader
	paces  Paces
	agents agentPods
	// freed are the policies with a slot that can be handed over, because a node has come back or
	// ended its attempt since their last pass began. It is an optimisation that is lost with the
	// process: the pass that hands over the slot begins sooner. Without it the longest of 290
	// hand-overs on 15,000 nodes took 2.5 s instead of 0.8 s (make bench).
	freed sync.Map
	// changed are the names of the Nodes with an event in the cache, or a write of the manager,
	// since they were read.
	changed sync.Map
	// nodes are the Nodes of the cache as they were last read. It is an optimisation: with 15,000
	// nodes, listing the cache took half of each pass (BenchmarkPass).
	nodes *state
}

// liveNodes lists the Nodes from the API server.
func (f *fleetReader) liveNodes(ctx context.Context) (*state, error) {
	nodes, err := reading.Nodes(ctx, f.live)
	if err != nil {
		return nil, err
	}
	s := newState(snapshot.Views(nodes))
	s.listed = true
	return s, nil
}

// beginPass marks the slots of the policy that were freed so far as seen by the new pass.
func (f *fleetReader) beginPass(policy string) { f.freed.Delete(policy) }

// freedSlot reports whether a slot of the policy can be handed over.
func (f *fleetReader) freedSlot(policy string) bool {
	_, freed := f.freed.Load(policy)
	return freed
}

// reread makes the next pass read the Node again.
func (f *fleetReader) reread(node string) { f.changed.Store(node, true) }

// cachedNodes returns the nodes of the cache. It reads those that have changed, which before the
// first pass are all, because each has had an event.
func (f *fleetReader) cachedNodes(ctx context.Context) (*state, error) {
	for key := range f.changed.Range {
		name, _ := key.(string)
		f.changed.Delete(name) // before the read, because a later change sends another event
		// As an optimisation no copy is made, because the Node is only read. What is kept of it
		// shares memory with the cache. Copies of 15,000 Nodes take 17 MB.
		var node corev1.Node
		switch err := f.client.Get(ctx, client.ObjectKey{Name: name}, &node, client.UnsafeDisableDeepCopy); {
		case apierrors.IsNotFound(err):
			f.nodes.remove(name)
		case err != nil:
			f.changed.Store(name, true)
			return nil, fmt.Errorf("reading node %q from the cache: %w", name, err)
		default:
			f.nodes.put(&node)
		}
	}
	return &state{Snapshot: plan.Snapshot{Nodes: slices.Clone(f.nodes.Nodes)}, index: maps.Clone(f.nodes.index)}, nil
}

// confirmReleased reads Nodes live, after the ledger was read. It checks that nodes which the cache
// has lost, or knows as others, are deleted for good, and that nodes whose grant was withdrawn do
// not show it. It reports whether any of this is wrong. The plan is then repeated with the live
// data. A Node that cannot be read keeps its slot, without affecting other slots.
func (f *fleetReader) confirmReleased(ctx context.Context, s *state, p plan.Plan) (behind bool) {
	for _, t := range p.Released() {
		proved := protocol.Gone
		if t.Node != nil {
			proved = protocol.Withdrawn
			if !proved(t.Node.Record, t.Entry) {
				continue
			}
		}
		node, err := f.liveNode(ctx, t.Entry.Node)
		switch {
		case apierrors.IsNotFound(err), err == nil && proved(protocol.RecordOf(node), t.Entry):
			continue
		case err != nil:
			s.fail(err)
			s.unread(t.Entry.Node)
			node = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: t.Entry.Node, UID: t.Entry.NodeUID}}
		}
		if err == nil || t.Node == nil {
			s.put(snapshot.Trim(node))
		}
		behind = true
	}
	return behind
}

// confirmAdopted checks with live reads that grants which a ledger takes back are on their Nodes,
// and reports whether the cache is older. A leader that was held up sees grants as active that
// another leader has ended and released since.
func (f *fleetReader) confirmAdopted(ctx context.Context, s *state, p plan.Plan) (bool, error) {
	behind := false
	for _, e := range p.Ledger.Adopted {
		node, err := f.liveNode(ctx, e.Node)
		switch {
		case apierrors.IsNotFound(err):
			s.remove(e.Node)
			behind = true
		case err != nil:
			return false, err
		case !protocol.RecordOf(node).Holds(e):
			s.replace(snapshot.Trim(node))
			behind = true
		}
	}
	return behind, nil
}

func (f *fleetReader) liveNode(ctx context.Context, name string) (*corev1.Node, error) {
	var node corev1.Node
	if err := f.live.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		return nil, fmt.Errorf("reading node %q: %w", name, err)
	}
	return &node, nil
}
