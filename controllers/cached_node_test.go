package controllers

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// The Nodes of a pass are those of the cache, which others share.
func TestPatchNode_LeavesTheCachedNodeAsItIs(t *testing.T) {
	for name, patch := range map[string]*nodepatch.Patch{
		"its metadata and status": nodepatch.New("").Annotate("example.com/a", "2"),
		"its spec":                func() *nodepatch.Patch { p := nodepatch.New(""); p.Uncordon(); return p }(),
	} {
		t.Run(name, func(t *testing.T) {
			cached := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
				Name: "n1", Annotations: map[string]string{"example.com/a": "1"}, Labels: map[string]string{"pool": "a"},
			}, Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "a"}}}}
			before := cached.DeepCopy()
			s := newState(snapshot.Views([]corev1.Node{*cached})) // refers to objects in the cache
			// The response is decoded into the object of the request, so JSON writes into the maps
			// and slices that the object has.
			answer := func(object client.Object) error {
				return json.Unmarshal([]byte(`{"metadata": {"name": "n1", "annotations": {"example.com/a": "2"}, "labels": {"pool": "b"}},
					"spec": {"taints": [{"key": "b"}]}}`), object)
			}
			w := &nodeWriter{reread: func(string) {}, client: interceptor.NewClient(nil, interceptor.Funcs{
				Patch: func(_ context.Context, _ client.WithWatch, object client.Object, _ client.Patch, _ ...client.PatchOption) error {
					return answer(object)
				},
				SubResourcePatch: func(_ context.Context, _ client.Client, _ string, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
					return answer(object)
				},
			})}
			if err := w.patchNode(t.Context(), s, s.Nodes[0], patch); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, cached); diff != "" {
				t.Errorf("the cache has changed (-before +after):\n%s", diff)
			}
			if got := s.Nodes[0].Labels["pool"]; got != "b" {
				t.Errorf("the pass goes on with label %q", got)
			}
		})
	}
}
