// Package reading reads policies and Nodes for a snapshot, and the Secrets that policies name. Both
// the manager and `kubectl reboot` use it.
package reading

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

// page is the number of Nodes in one page of a LIST. Each page is trimmed before the next one is
// read.
const page = 250

// Policies lists all RebootPolicies.
func Policies(ctx context.Context, reader client.Reader) ([]v1alpha1.RebootPolicy, error) {
	var policies v1alpha1.RebootPolicyList
	if err := reader.List(ctx, &policies); err != nil {
		return nil, fmt.Errorf("listing policies: %w", err)
	}
	return policies.Items, nil
}

// Nodes lists all Nodes from the API server, trimmed as snapshot.Trim does. It is not for caches,
// which do not support pages.
func Nodes(ctx context.Context, live client.Reader) ([]corev1.Node, error) {
	var all []corev1.Node
	if err := EachNode(ctx, live, func(n *corev1.Node) { all = append(all, *snapshot.Trim(n)) }); err != nil {
		return nil, err
	}
	return all, nil
}

// EachNode lists all Nodes from the API server, in pages of one consistent revision, and calls take
// for each of them.
func EachNode(ctx context.Context, live client.Reader, take func(*corev1.Node)) error {
	for token := ""; ; {
		var nodes corev1.NodeList
		if err := live.List(ctx, &nodes, client.Limit(page), client.Continue(token)); err != nil {
			return fmt.Errorf("listing nodes from the API server: %w", err)
		}
		for i := range nodes.Items {
			take(&nodes.Items[i])
		}
		if token = nodes.Continue; token == "" {
			return nil
		}
	}
}
