package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge/definition"
)

// Kind is one of those that are stored.
type Kind string

// The kinds that are stored.
const (
	Nodes    Kind = "nodes"
	Policies Kind = "rebootpolicies"
)

// KindOf is the kind of an object, or of a list of them. Empty: it is not stored.
func KindOf(object any) Kind {
	switch object.(type) {
	case *corev1.Node, *corev1.NodeList:
		return Nodes
	case *v1alpha1.RebootPolicy, *v1alpha1.RebootPolicyList:
		return Policies
	}
	return ""
}

// Key names one object.
type Key struct {
	Kind Kind
	Name string
}

// Event is one revision of one object. The objects are never changed: copy them before you do.
type Event struct {
	Key
	Revision int64
	// Before is nil when the object was made, After when it was deleted.
	Before, After client.Object
	// By is the field manager that wrote it.
	By string
}

// Store holds the objects. Make one with New.
type Store struct {
	definition *definition.Definition
	witness    func(Event)

	mu       sync.Mutex
	revision int64
	objects  map[Key]client.Object
	// names are those of each kind, sorted.
	names map[Kind][]string
	// log are the latest revisions; what is older than compacted is forgotten.
	log       []Event
	compacted int64
	watches   map[Key][]*Watch
}

// New makes an empty store, in which policies are what their definition lets them be. The witness, where there is one, sees
// each revision in its order while nobody else can write.
func New(definition *definition.Definition, witness func(Event)) *Store {
	return &Store{definition: definition, witness: witness, objects: map[Key]client.Object{}, names: map[Kind][]string{}, watches: map[Key][]*Watch{}}
}

// Get reads one object, as a copy.
func (s *Store) Get(key Key) (client.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, ok := s.objects[key]
	if !ok {
		return nil, notFound(key)
	}
	return copied(object), nil
}

// List reads all objects of a kind, sorted by name and not copied, and the revision of the whole.
func (s *Store) List(kind Kind) ([]client.Object, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list(Key{Kind: kind}), s.revision
}

func (s *Store) list(of Key) []client.Object {
	if of.Name != "" {
		if object, there := s.objects[of]; there {
			return []client.Object{object}
		}
		return nil
	}
	all := make([]client.Object, 0, len(s.names[of.Kind]))
	for _, name := range s.names[of.Kind] {
		all = append(all, s.objects[Key{of.Kind, name}])
	}
	return all
}

// Create stores a new object.
func (s *Store) Create(object client.Object, by string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := Key{KindOf(object), object.GetName()}
	if _, there := s.objects[key]; there {
		return apierrors.NewAlreadyExists(resource(key.Kind), key.Name)
	}
	after := copied(object)
	after.SetGeneration(1)
	if at, there := slices.BinarySearch(s.names[key.Kind], key.Name); !there {
		s.names[key.Kind] = slices.Insert(s.names[key.Kind], at, key.Name)
	}
	s.put(key, nil, after, by)
	return nil
}

// Change lets somebody else than a client of the API write an object: a kubelet, or an administrator's kubectl. It is
// written as it is left; a node with another cordon than before belongs to them. False: it is as it was, or not there, or the
// definition of policies refuses it.
func (s *Store) Change(key Key, by string, change func(client.Object)) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, ok := s.objects[key]
	if !ok {
		return false
	}
	after := copied(before)
	change(after)
	if policy, is := after.(*v1alpha1.RebootPolicy); is {
		bumpGeneration(before, policy)
		if was, _ := before.(*v1alpha1.RebootPolicy); s.definition.Refusal(context.Background(), was, policy) != nil {
			return false
		}
	}
	return s.replace(key, before, after, by) != before
}

// Delete removes an object that has no finalizers, as Nodes have none. False: it is not there.
func (s *Store) Delete(key Key, by string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, there := s.objects[key]
	if there {
		s.remove(key, before, by)
	}
	return there
}

// replace puts a new version instead of an old one, unless nothing has changed.
func (s *Store) replace(key Key, before, after client.Object, by string) client.Object {
	if equality.Semantic.DeepEqual(before, after) {
		return before
	}
	if after.GetDeletionTimestamp() != nil && len(after.GetFinalizers()) == 0 {
		s.remove(key, before, by)
		return after
	}
	own(before, after, by)
	s.put(key, before, after, by)
	return after
}

func (s *Store) put(key Key, before, after client.Object, by string) {
	s.revision++
	after.SetResourceVersion(strconv.FormatInt(s.revision, 10))
	s.objects[key] = after
	s.publish(Event{Key: key, Revision: s.revision, Before: before, After: after, By: by})
}

func (s *Store) remove(key Key, before client.Object, by string) {
	s.revision++
	delete(s.objects, key)
	if at, there := slices.BinarySearch(s.names[key.Kind], key.Name); there {
		s.names[key.Kind] = slices.Delete(s.names[key.Kind], at, at+1)
	}
	s.publish(Event{Key: key, Revision: s.revision, Before: before, By: by})
}

// checkVersion is optimistic concurrency: an empty version is content with any.
func checkVersion(key Key, current client.Object, version string) error {
	if version == "" || version == current.GetResourceVersion() {
		return nil
	}
	return apierrors.NewConflict(resource(key.Kind), key.Name, fmt.Errorf("it is at %s by now, not %s", current.GetResourceVersion(), version))
}

func copied(object client.Object) client.Object {
	copied, _ := object.DeepCopyObject().(client.Object)
	return copied
}

func resource(kind Kind) schema.GroupResource {
	if kind == Policies {
		return schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: string(kind)}
	}
	return schema.GroupResource{Resource: string(kind)}
}

func notFound(key Key) error { return apierrors.NewNotFound(resource(key.Kind), key.Name) }
