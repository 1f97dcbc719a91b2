package controllers

import (
	"context"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodeOfVersion is a Node after its so many-th change.
func nodeOfVersion(name string, version int) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, ResourceVersion: strconv.Itoa(version), Labels: map[string]string{"version": strconv.Itoa(version)},
	}}
}

// shown are the versions that a state shows, by the names of its nodes, read in each of the ways in which it is read.
func shown(t *testing.T, s *state) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for name, i := range s.Index {
		if s.nodes[i].Name != name || s.Nodes[i].Name != name || s.nodes[i].Labels["version"] != s.Nodes[i].Labels["version"] {
			t.Errorf("at the place of %s there are %s and %s", name, s.nodes[i].Name, s.Nodes[i].Name)
		}
		versions[name] = s.Nodes[i].Labels["version"]
	}
	if len(s.nodes) != len(versions) || len(s.Nodes) != len(versions) {
		t.Errorf("%d nodes, %d views and %d names", len(s.nodes), len(s.Nodes), len(versions))
	}
	return versions
}

// A cache lists its Nodes in no order. What a pass has written or lost is its own: the cache keeps what it has.
func TestState_ShowsWhatThePassHasDone(t *testing.T) {
	listed := []corev1.Node{nodeOfVersion("c", 1), nodeOfVersion("a", 1), nodeOfVersion("b", 1)}
	s := newState(listed, newView)
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
	if listed[0].ResourceVersion != "1" || listed[2].ResourceVersion != "1" {
		t.Error("a write has changed what was listed")
	}
}

// cachedList is a cache that lists these Nodes.
type cachedList struct {
	client.Client
	nodes []corev1.Node
}

func (c cachedList) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*corev1.NodeList).Items = slices.Clone(c.nodes)
	return nil
}

// A Node of the cache is read anew when it has changed, and one that is gone is not remembered.
func TestFleetReader_ReadsWhatHasChanged(t *testing.T) {
	var f fleetReader
	read := func(nodes ...corev1.Node) *state {
		f.client = cachedList{nodes: nodes}
		s, err := f.cachedNodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := read(nodeOfVersion("a", 1), nodeOfVersion("b", 1))
	second := read(nodeOfVersion("b", 2), nodeOfVersion("a", 1))
	if diff := gocmp.Diff(map[string]string{"a": "1", "b": "2"}, shown(t, second)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if first.Nodes[first.Index["a"]] != second.Nodes[second.Index["a"]] {
		t.Error("a Node that has not changed is read anew")
	}
	if read(nodeOfVersion("b", 2)); len(f.views) != 1 {
		t.Errorf("%d Nodes are remembered of one", len(f.views))
	}
}
