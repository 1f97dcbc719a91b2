package apiserver

import (
	"cmp"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxLog is the number of revisions that are kept. etcd forgets revisions by age.
const maxLog = 4096

// Watch is a stream of revisions. Events wait on the server until they are taken.
type Watch struct {
	store   *Store
	of      Key
	changed chan struct{}

	pending []Event
}

// Watch lists and then watches the objects of a kind, or one named object. The objects are not
// copied.
func (s *Store) Watch(of Key) (w *Watch, objects []client.Object, revision int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open(of), s.list(of), s.revision
}

// Resume watches from a revision on. It fails if that revision is compacted, and the caller has to
// list again.
func (s *Store) Resume(of Key, since int64) (*Watch, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since < s.compacted {
		return nil, apierrors.NewResourceExpired("the requested revision has been compacted")
	}
	w := s.open(of)
	first, _ := slices.BinarySearchFunc(s.log, since+1, func(e Event, revision int64) int { return cmp.Compare(e.Revision, revision) })
	for _, e := range s.log[first:] {
		if w.of.has(e.Key) {
			w.pending = append(w.pending, e)
		}
	}
	w.wake()
	return w, nil
}

// Compact forgets all revisions so far, so that disconnected clients have to list again.
func (s *Store) Compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.compacted = nil, s.revision
}

// Changed signals that there are events to take.
func (w *Watch) Changed() <-chan struct{} { return w.changed }

// Take returns the waiting events.
func (w *Watch) Take() []Event {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	events := w.pending
	w.pending = nil
	return events
}

// Close ends the stream.
func (w *Watch) Close() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	all := w.store.watches[w.of]
	w.store.watches[w.of] = slices.DeleteFunc(all, func(other *Watch) bool { return other == w })
	w.pending = nil
}

func (s *Store) open(of Key) *Watch {
	w := &Watch{store: s, of: of, changed: make(chan struct{}, 1)}
	s.watches[of] = append(s.watches[of], w)
	return w
}

func (w *Watch) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

func (s *Store) publish(e Event) {
	if s.log = append(s.log, e); len(s.log) > maxLog {
		s.compacted = s.log[maxLog/2-1].Revision
		s.log = slices.Clone(s.log[maxLog/2:])
	}
	for _, of := range []Key{{Kind: e.Kind}, e.Key} {
		for _, w := range s.watches[of] {
			w.pending = append(w.pending, e)
			w.wake()
		}
	}
	if s.witness != nil {
		s.witness(e)
	}
}
