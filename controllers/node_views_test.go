package controllers

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan"
)

// cachedNode is a Node as the cache has it after its so many-th change.
func cachedNode(name string, version int) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, ResourceVersion: strconv.Itoa(version), Labels: map[string]string{"version": strconv.Itoa(version)},
	}}
}

// shown are the versions that a state shows, by the names of its nodes, read in each of the ways in which it is read.
func shown(t *testing.T, s *state) map[string]string {
	t.Helper()
	versions := map[string]string{}
	for name, i := range s.index {
		if s.nodes[i].Name != name || s.Nodes[i].Name != name || s.nodes[i].Labels["version"] != s.Nodes[i].Labels["version"] {
			t.Errorf("at the place of %s there are %s and %s", name, s.nodes[i].Name, s.Nodes[i].Name)
		}
		versions[name] = s.Nodes[i].Labels["version"]
	}
	if !slices.IsSortedFunc(s.nodes, byName) {
		t.Errorf("the nodes are in no order")
	}
	if len(s.nodes) != len(versions) || len(s.Nodes) != len(versions) {
		t.Errorf("%d nodes, %d views and %d names", len(s.nodes), len(s.Nodes), len(versions))
	}
	return versions
}

func TestNodeViews_ShowWhatTheCacheHas(t *testing.T) {
	a, b, c := cachedNode("a", 1), cachedNode("b", 1), cachedNode("c", 1)
	newer := cachedNode("b", 2)
	for name, tc := range map[string]struct {
		before, now []any
		want        map[string]string
	}{
		"nothing":                 {want: map[string]string{}},
		"the first time":          {now: []any{a, b}, want: map[string]string{"a": "1", "b": "1"}},
		"nothing has changed":     {before: []any{a, b}, now: []any{b, a}, want: map[string]string{"a": "1", "b": "1"}},
		"one has changed":         {before: []any{a, b}, now: []any{a, newer}, want: map[string]string{"a": "1", "b": "2"}},
		"one is new":              {before: []any{a}, now: []any{c, a}, want: map[string]string{"a": "1", "c": "1"}},
		"one is gone":             {before: []any{a, b, c}, now: []any{c, b}, want: map[string]string{"b": "1", "c": "1"}},
		"one is gone, one is new": {before: []any{a, b}, now: []any{b, c}, want: map[string]string{"b": "1", "c": "1"}},
		"gone, new and changed":   {before: []any{a, b}, now: []any{newer, c}, want: map[string]string{"b": "2", "c": "1"}},
		"all are gone":            {before: []any{a, b}, want: map[string]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			var v nodeViews
			v.state(tc.before)
			if diff := cmp.Diff(tc.want, shown(t, v.state(tc.now))); diff != "" {
				t.Errorf("(-cache +state):\n%s", diff)
			}
			held := []int{len(v.nodes), len(v.views), len(v.index), len(v.known)}
			if diff := cmp.Diff(slices.Repeat([]int{len(tc.now)}, len(held)), held); diff != "" {
				t.Errorf("nodes, views, names and objects that are held (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNodeViews_AreMadeOnceForEachObject(t *testing.T) {
	var v nodeViews
	a, b := cachedNode("a", 1), cachedNode("b", 1)
	views := func(s *state) map[string]*plan.Node {
		byName := map[string]*plan.Node{}
		for name, i := range s.index {
			byName[name] = s.Nodes[i]
		}
		return byName
	}
	before := views(v.state([]any{a, b}))
	after := views(v.state([]any{cachedNode("b", 2), a}))
	var same []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if after[name] == before[name] {
			same = append(same, name)
		}
	}
	if diff := cmp.Diff([]string{"a"}, same); diff != "" {
		t.Errorf("views that are those of the pass before (-want +got):\n%s", diff)
	}
}

// The memory is for who reboots.
func TestNodeViews_AreNotHeldAtRest(t *testing.T) {
	s := newServer(t, 2*needy, clock.RealClock{})
	s.pass(t)
	if got := len(s.reconciler.views.nodes); got != 2*needy {
		t.Errorf("%d views are held while there are reboots to come, want %d", got, 2*needy)
	}
	s.policy.Status.Nodes, s.policy.Status.Grants = v1alpha1.NodeCounts{}, nil
	if err := s.nodes.Replace([]any{cachedNode("a", 1)}, ""); err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{workers, ""} {
		if _, err := s.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: policy}}); err != nil {
			t.Fatal(err)
		}
		if got := len(s.reconciler.views.nodes); got != 0 {
			t.Errorf("%d views are held at rest after a pass for policy %q", got, policy)
		}
	}
}

// What a pass has written or lost is its own: the next one begins with what the cache has.
func TestNodeViews_APassChangesItsOwnStateOnly(t *testing.T) {
	var v nodeViews
	cached := []any{cachedNode("a", 1), cachedNode("b", 1), cachedNode("c", 1)}
	s := v.state(cached)
	s.replace(cachedNode("c", 2))
	s.remove("a")
	s.replace(cachedNode("b", 2))
	s.replace(cachedNode("unknown", 2))
	s.remove("unknown")
	if diff := cmp.Diff(map[string]string{"b": "2", "c": "2"}, shown(t, s)); diff != "" {
		t.Errorf("the pass itself (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "1", "c": "1"}, shown(t, v.state(cached))); diff != "" {
		t.Errorf("the next pass (-want +got):\n%s", diff)
	}
}

// closed is a cache that lets nobody look at its Nodes.
type closed struct{ cache.Cache }

func (closed) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return struct{ cache.Informer }{}, nil
}

func TestCachedNodes_OfACacheThatLetsNobodyLookAreListed(t *testing.T) {
	s := newServer(t, needy, clock.RealClock{})
	s.reconciler.shelf, s.reconciler.cache = nil, closed{}
	got, err := s.reconciler.cachedNodes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(got.nodes) != needy || len(got.Nodes) != needy || len(got.index) != needy {
		t.Errorf("%d nodes, %d views, %d names, want %d of each", len(got.nodes), len(got.Nodes), len(got.index), needy)
	}
}
