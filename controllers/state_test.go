package controllers

import (
	"context"
	"errors"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

// nodeOfVersion returns a Node with a resourceVersion.
func nodeOfVersion(name string, version int) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, ResourceVersion: strconv.Itoa(version), Labels: map[string]string{"version": strconv.Itoa(version)},
	}}
}

// shown returns the versions of a state's nodes by name.
func shown(t *testing.T, s *state) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for name, i := range s.index {
		if n := s.Nodes[i]; n.Name != name || n.ResourceVersion != n.Labels["version"] {
			t.Errorf("at the place of %s there is %s of version %s", name, n.Name, n.ResourceVersion)
		}
		versions[name] = s.Nodes[i].ResourceVersion
	}
	if len(s.Nodes) != len(versions) {
		t.Errorf("%d nodes and %d names", len(s.Nodes), len(versions))
	}
	return versions
}

// Nodes come in any order. A pass only changes its own copy of the list.
func TestState_ShowsTheWritesOfThePass(t *testing.T) {
	began := snapshot.Views([]corev1.Node{nodeOfVersion("c", 1), nodeOfVersion("a", 1), nodeOfVersion("b", 1)})
	c := began[0]
	s := newState(began)
	if diff := gocmp.Diff(map[string]string{"a": "1", "b": "1", "c": "1"}, shown(t, s)); diff != "" {
		t.Errorf("as it was listed (-want +got):\n%s", diff)
	}
	s.replace(new(nodeOfVersion("c", 2)))
	s.remove("a")
	s.replace(new(nodeOfVersion("b", 2)))
	s.replace(new(nodeOfVersion("unknown", 2)))
	s.remove("unknown")
	s.put(new(nodeOfVersion("d", 2)))
	if diff := gocmp.Diff(map[string]string{"b": "2", "c": "2", "d": "2"}, shown(t, s)); diff != "" {
		t.Errorf("the pass itself (-want +got):\n%s", diff)
	}
	if c.ResourceVersion != "1" {
		t.Error("a write has changed what the pass began with")
	}
}

// cachedNodes is a cache of these Nodes. Reading broken fails.
type cachedNodes struct {
	client.Client

	nodes  map[string]corev1.Node
	broken string
}

func (c cachedNodes) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	node, ok := c.nodes[key.Name]
	switch {
	case key.Name == c.broken:
		return errors.New("the cache does not catch up")
	case !ok:
		return apierrors.NewNotFound(corev1.Resource("nodes"), key.Name)
	}
	node.DeepCopyInto(object.(*corev1.Node))
	return nil
}

// A Node of the cache is read again after an event, and removed if it is gone. The next pass does
// not see what one pass does to its nodes.
func TestFleetReader_ReadsChangedNodes(t *testing.T) {
	cache := cachedNodes{nodes: map[string]corev1.Node{"a": nodeOfVersion("a", 1), "b": nodeOfVersion("b", 1)}}
	f := fleetReader{nodes: newState(nil)}
	read := func(want map[string]string, changed ...string) *state {
		t.Helper()
		f.client = cache
		for _, name := range changed {
			f.changed.Store(name, true)
		}
		s, err := f.cachedNodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want, shown(t, s)); diff != "" {
			t.Errorf("after events of %v (-want +got):\n%s", changed, diff)
		}
		return s
	}
	first := read(map[string]string{"a": "1", "b": "1"}, "a", "b")
	cache.nodes["b"] = nodeOfVersion("b", 2)
	second := read(map[string]string{"a": "1", "b": "2"}, "b")
	if first.Nodes[first.index["a"]] != second.Nodes[second.index["a"]] {
		t.Error("a Node that has not changed is read again")
	}
	second.remove("a")
	second.put(new(nodeOfVersion("b", 3)))
	read(map[string]string{"a": "1", "b": "2"})
	delete(cache.nodes, "a")
	cache.nodes["c"] = nodeOfVersion("c", 1)
	read(map[string]string{"b": "2", "c": "1"}, "a", "c")
}

// A change that could not be read is read in the next pass.
func TestFleetReader_ForgetsNoChange(t *testing.T) {
	cache := cachedNodes{nodes: map[string]corev1.Node{"a": nodeOfVersion("a", 1)}, broken: "a"}
	f := fleetReader{client: cache, nodes: newState(nil)}
	f.changed.Store("a", true)
	if _, err := f.cachedNodes(t.Context()); err == nil {
		t.Error("a Node that cannot be read is left out")
	}
	cache.broken = ""
	f.client = cache
	if s, err := f.cachedNodes(t.Context()); err != nil || len(s.Nodes) != 1 {
		t.Errorf("%v, %v", s, err)
	}
}
