package drain

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
)

// namespaceLabels looks the labels of namespaces up, each namespace once until they are forgotten. It is not for several goroutines.
type namespaceLabels struct {
	client *Client
	known  map[string]labels.Set
}

// forget makes each namespace be looked up again.
func (n *namespaceLabels) forget() { n.known = nil }

// get returns the labels of a namespace.
func (n *namespaceLabels) get(ctx context.Context, name string) (labels.Set, error) {
	if set, ok := n.known[name]; ok {
		return set, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	namespace, err := n.client.namespace(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("getting namespace %q for the drain rules: %w", name, err)
	}
	if n.known == nil {
		n.known = map[string]labels.Set{}
	}
	n.known[name] = namespace.Labels
	return namespace.Labels, nil
}
