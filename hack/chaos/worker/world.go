package worker

import (
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

// world is the cluster as the witness sees it, and its history since the schedule began.
type world struct {
	mu        sync.Mutex
	revision  int64
	revisions []judge.Change
	nodes     map[string]*corev1.Node
	pods      map[string]*corev1.Pod // by UID
	policies  map[string]*v1alpha1.RebootPolicy
	// begun counts drains that have begun.
	begun    int
	draining map[string]int64
	// grants counts entries of ledgers by their seq.
	grants map[int64]bool
	// pod gets each revision of a pod, and whether it is gone for good.
	pod func(pod *corev1.Pod, deleted bool)
}

func newWorld() *world {
	w := &world{nodes: map[string]*corev1.Node{}, pods: map[string]*corev1.Pod{}, policies: map[string]*v1alpha1.RebootPolicy{}}
	w.begin(nil)
	return w
}

// begin forgets the history.
func (w *world) begin(pod func(pod *corev1.Pod, deleted bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revisions, w.begun, w.pod = nil, 0, pod
	w.draining, w.grants = map[string]int64{}, map[int64]bool{}
}

func (w *world) see(r judge.Change) {
	w.mu.Lock()
	w.revisions = append(w.revisions, r)
	pod := w.pod
	switch {
	case r.Node != nil:
		w.seeNode(r)
	case r.Pod != nil && r.Gone:
		delete(w.pods, string(r.Pod.UID))
	case r.Pod != nil:
		w.pods[string(r.Pod.UID)] = r.Pod
	case r.Policy != nil && r.Gone:
		delete(w.policies, r.Name)
	case r.Policy != nil:
		w.policies[r.Name] = r.Policy
		for _, e := range r.Policy.Status.Grants {
			w.grants[e.Seq] = true
		}
	}
	w.mu.Unlock()
	if r.Pod != nil && pod != nil {
		pod(r.Pod, r.Gone)
	}
}

func (w *world) seeNode(r judge.Change) {
	name := r.Node.Name
	if r.Gone {
		delete(w.nodes, name)
		return
	}
	w.nodes[name] = r.Node
	progress, err := protocol.ParseProgress(r.Node.Annotations)
	if err == nil && progress != nil && progress.Phase == protocol.PhaseDraining && w.draining[name] != progress.Seq {
		w.draining[name] = progress.Seq
		w.begun++
	}
}

func (w *world) past(revision int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.revision = revision
}

// read lets f look. What it looks at is not to be changed, nor kept but for the objects.
func (w *world) read(f func(w *world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(w)
}

// schedulable are the names of the nodes that take pods.
func (w *world) schedulable() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for name, node := range maps.All(w.nodes) {
		if !node.Spec.Unschedulable {
			names = append(names, name)
		}
	}
	return names
}
