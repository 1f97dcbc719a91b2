package reading_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/controllers/reading"
)

// pages is an API server with pages of Nodes. Its continue tokens count the pages from 0.
type pages struct {
	client.Reader

	nodes [][]string
	// broken is the page that cannot be read.
	broken int
}

func (p pages) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	page, _ := strconv.Atoi(asked.Continue)
	if asked.Limit == 0 || page == p.broken {
		return errors.New("no such page")
	}
	nodes := list.(*corev1.NodeList)
	for _, name := range p.nodes[page] {
		nodes.Items = append(nodes.Items, corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		}})
	}
	if page+1 < len(p.nodes) {
		nodes.Continue = strconv.Itoa(page + 1)
	}
	return nil
}

// TestNodes shows that every page of a LIST is read, and that each Node is trimmed. If one page
// fails, so does the list.
func TestNodes(t *testing.T) {
	api := pages{nodes: [][]string{{"a", "b"}, {"c"}, {"d"}}, broken: -1}
	nodes, err := reading.Nodes(t.Context(), api)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
		if n.ManagedFields != nil {
			t.Errorf("%s is not trimmed", n.Name)
		}
	}
	if diff := cmp.Diff(slices.Concat(api.nodes...), names); diff != "" {
		t.Errorf("(-API server +listed):\n%s", diff)
	}
	api.broken = 2
	if nodes, err := reading.Nodes(t.Context(), api); err == nil || nodes != nil {
		t.Errorf("%d nodes of a LIST that broke off, and error %v", len(nodes), err)
	}
}
