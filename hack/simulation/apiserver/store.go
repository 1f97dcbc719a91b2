// Package apiserver is an API server in memory with as many features as the operator needs, and a
// client for it. It stores Nodes and RebootPolicies, with resource versions, optimistic
// concurrency, strategic merge patches and the status subresource. It records who set a cordon,
// validates policies by their CustomResourceDefinition, and serves watches with a compacted
// history. It never delays or fails requests: package process does.
package apiserver

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/judge/definition"
)

// Kind is a kind of stored objects.
type Kind string

// The kinds that are stored.
const (
	Nodes    Kind = "nodes"
	Policies Kind = "rebootpolicies"
)

// KindOf returns the kind of an object or a list. It panics for kinds that are not stored.
func KindOf(object any) Kind {
	switch object.(type) {
	case *corev1.Node, *corev1.NodeList:
		return Nodes
	case *v1alpha1.RebootPolicy, *v1alpha1.RebootPolicyList:
		return Policies
	}
	panic(fmt.Sprintf("nobody stores a %T", object))
}

// Key identifies one object, or all of a kind if the name is empty.
type Key struct {
	Kind Kind
	Name string
}

func (of Key) has(key Key) bool { return of.Kind == key.Kind && (of.Name == "" || of.Name == key.Name) }

// Event is one revision of one object. Do not modify its objects: copy them first.
type Event struct {
	Key
	Revision int64
	// Before is nil if the object was created, and After is nil if it was deleted.
	Before, After client.Object
	// By is the field manager of the write.
	By string
}

// Store holds the objects. Create one with New.
type Store struct {
	definition *definition.Definition
	witness    func(Event)

	mu       sync.Mutex
	revision int64
	objects  map[Key]client.Object
	// log holds the latest revisions. Those up to compacted are forgotten.
	log       []Event
	compacted int64
	watches   map[Key][]*Watch
	mutate    func(by string, before, after client.Object)
}

// Mutate installs a mutating admission policy that may change each object before it is stored. Nil
// removes it.
func (s *Store) Mutate(mutate func(by string, before, after client.Object)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mutate = mutate
}

// New returns an empty store. It validates policies by the definition unless that is nil. The
// witness, if any, is called with each revision in order, while nobody else can write.
func New(definition *definition.Definition, witness func(Event)) *Store {
	return &Store{definition: definition, witness: witness, objects: map[Key]client.Object{}, watches: map[Key][]*Watch{}}
}

// Get returns a copy of one object.
func (s *Store) Get(key Key) (client.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, ok := s.objects[key]
	if !ok {
		return nil, apierrors.NewNotFound(resource(key.Kind), key.Name)
	}
	return copied(object), nil
}

// List returns all objects of a kind, sorted by name and not copied.
func (s *Store) List(kind Kind) []client.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list(Key{Kind: kind})
}

// Read returns a copy of a named object, and whether it exists.
func Read[T client.Object](s *Store, name string) (object T, ok bool) {
	stored, err := s.Get(Key{KindOf(object), name})
	object, _ = stored.(T)
	return object, err == nil
}

// ReadAll returns all objects of a type, sorted by name and not copied.
func ReadAll[T client.Object](s *Store) (all []T) {
	var of T
	for _, stored := range s.List(KindOf(of)) {
		object, _ := stored.(T)
		all = append(all, object)
	}
	return all
}

func (s *Store) list(of Key) (all []client.Object) {
	for key, object := range s.objects {
		if of.has(key) {
			all = append(all, object)
		}
	}
	slices.SortFunc(all, func(a, b client.Object) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return all
}

// Create stores a new object, and updates the given object to what was stored.
func (s *Store) Create(object client.Object, by string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := keyOf(object)
	if _, ok := s.objects[key]; ok {
		return apierrors.NewAlreadyExists(resource(key.Kind), key.Name)
	}
	after := copied(object)
	after.SetGeneration(1)
	s.put(key, nil, after, by)
	Into(object, copied(after))
	return nil
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
	s.publish(Event{Key: key, Revision: s.revision, Before: before, By: by})
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
