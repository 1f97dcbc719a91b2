package controllers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/listing"
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

// fleetReader reads policies, Nodes and the agents' pods: from the cache, and live where the cache may be behind.
type fleetReader struct {
	client client.Client
	live   client.Reader
	paces  Paces
	agents agentPods
	// freed are the policies of which a slot can be handed over: since their last pass began, a node has come back or ended its attempt.
	// An optimisation, lost with the process: the pass that hands the slot over begins sooner. Without it the longest of 290 hand-overs on
	// 15,000 nodes took 2.5 s in place of 0.8 s (make bench).
	freed sync.Map
	// changed are the names of the Nodes that the cache has had an event of, or that the manager has written, since they were read.
	changed sync.Map
	// seen are the Nodes of the cache as they were read last. An optimisation: with 15,000 nodes, listing the cache took half of each
	// pass (BenchmarkPass).
	seen *state
}

// liveNodes lists the Nodes from the API server.
func (f *fleetReader) liveNodes(ctx context.Context) (*state, error) {
	nodes, err := listing.Nodes(ctx, f.live)
	if err != nil {
		return nil, err
	}
	s := newState(snapshot.Views(nodes))
	s.listed = true
	return s, nil
}

// beginPass: the pass sees what has freed a slot of the policy until now.
func (f *fleetReader) beginPass(policy string) { f.freed.Delete(policy) }

// freedSlot reports whether a slot of the policy can be handed over.
func (f *fleetReader) freedSlot(policy string) bool {
	_, freed := f.freed.Load(policy)
	return freed
}

// reread makes the next pass read the Node anew.
func (f *fleetReader) reread(node string) { f.changed.Store(node, true) }

// cachedNodes are the nodes of the cache. It reads those that have changed: before any pass all, of each of which there was an event.
func (f *fleetReader) cachedNodes(ctx context.Context) (*state, error) {
	for key := range f.changed.Range {
		name, _ := key.(string)
		f.changed.Delete(name) // first: of a change that comes now there will be an event
		// An optimisation: the Node is only read, and what is kept of it shares memory with the cache. Copies of 15,000 take 17 MB.
		var node corev1.Node
		switch err := f.client.Get(ctx, client.ObjectKey{Name: name}, &node, client.UnsafeDisableDeepCopy); {
		case apierrors.IsNotFound(err):
			f.seen.remove(name)
		case err != nil:
			f.changed.Store(name, true)
			return nil, fmt.Errorf("reading node %q from the cache: %w", name, err)
		default:
			f.seen.put(&node)
		}
	}
	return &state{Snapshot: plan.Snapshot{Nodes: slices.Clone(f.seen.Nodes), Index: maps.Clone(f.seen.Index)}}, nil
}

// confirmReleased asks the API server, after the ledger was read, whether nodes that the cache has lost, or knows as others, are
// deleted for good. It also asks whether nodes whose grant was withdrawn do not show it. It reports whether any of this is not so:
// then the plan is made again with what the API server has. A Node that cannot be read keeps its slot; the slots of others go on.
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
			s.refused = errors.Join(s.refused, err)
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

// confirmAdopted asks the API server whether grants that a ledger takes back are on their Nodes, and reports whether the cache is
// older. A leader that was held up sees grants as active that another one has ended and released meanwhile.
func (f *fleetReader) confirmAdopted(ctx context.Context, s *state, p plan.Plan) (bool, error) {
	behind := false
	for _, e := range p.Adopted {
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
