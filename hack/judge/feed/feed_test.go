package feed

import (
	"context"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// Revisions that the watch missed are read from the store, each once and in order.
func TestFeed_ReadsObjectsThatNoWatchDelivered(t *testing.T) {
	store := map[string][]int64{"a": {3, 6, 9}, "b": {5, 7, 8}}
	api := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			o := client.ListOptions{}
			o.ApplyOptions(options)
			instant := int64(12)
			if o.Raw != nil {
				instant, _ = strconv.ParseInt(o.Raw.ResourceVersion, 10, 64)
			}
			nodes := list.(*corev1.NodeList)
			nodes.Items, nodes.ResourceVersion = nil, strconv.FormatInt(instant, 10)
			for name, revisions := range store {
				n := corev1.Node{}
				for _, r := range revisions {
					if r <= instant {
						n.Name, n.UID, n.ResourceVersion = name, types.UID(name), strconv.FormatInt(r, 10)
					}
				}
				if n.Name != "" {
					nodes.Items = append(nodes.Items, n)
				}
			}
			return nil
		},
	})
	w := &watched{feed: &Feed{api: api}, kind: Kind{List: &corev1.NodeList{}}, seen: 5, there: map[types.UID]bool{"a": true, "b": true}}
	events, err := w.resume(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	events.Stop()
	var got []string
	for _, r := range w.feed.Since(0) {
		got = append(got, r.Name+strconv.FormatInt(r.Revision, 10))
	}
	if want := []string{"a6", "b7", "b8", "a9"}; !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
	w.there["c"] = true
	if _, err := w.resume(t.Context()); err == nil {
		t.Error("accepted a deletion that no watch delivered")
	}
}
