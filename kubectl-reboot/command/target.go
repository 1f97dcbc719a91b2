package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// How the kinds may be written before a name.
var (
	nodeKinds   = []string{"node", "nodes", "no"}
	policyKinds = []string{"rebootpolicy", "rebootpolicies", "rbp", "rebootpolicy.reboot-operator.io", "rebootpolicies.reboot-operator.io"}
)

// find reads the node or the policy that an argument means: node/NAME, rbp/NAME, or a name that only one of them has.
func find(ctx context.Context, c client.Client, argument string) (client.Object, error) {
	kind, name, qualified := strings.Cut(argument, "/")
	switch {
	case !qualified:
		return findBare(ctx, c, argument)
	case slices.Contains(nodeKinds, kind):
		return get(ctx, c, &corev1.Node{}, name)
	case slices.Contains(policyKinds, kind):
		return get(ctx, c, &v1alpha1.RebootPolicy{}, name)
	}
	return nil, fmt.Errorf("%q is neither node/NAME nor rbp/NAME", argument)
}

func findBare(ctx context.Context, c client.Client, name string) (client.Object, error) {
	node, nodeErr := get(ctx, c, &corev1.Node{}, name)
	if nodeErr != nil && !apierrors.IsNotFound(nodeErr) {
		return nil, nodeErr
	}
	policy, policyErr := get(ctx, c, &v1alpha1.RebootPolicy{}, name)
	if policyErr != nil && !apierrors.IsNotFound(policyErr) {
		return nil, policyErr
	}
	switch {
	case nodeErr == nil && policyErr == nil:
		return nil, fmt.Errorf("there are a node and a policy %q: use node/%s or rbp/%s", name, name, name)
	case nodeErr == nil:
		return node, nil
	case policyErr == nil:
		return policy, nil
	}
	return nil, fmt.Errorf("there is no node and no policy %q", name)
}

func get(ctx context.Context, c client.Client, object client.Object, name string) (client.Object, error) {
	if err := c.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return nil, fmt.Errorf("reading %s: %w", titled(object, name), err)
	}
	return object, nil
}

// titled names an object for people.
func titled(object client.Object, name string) string {
	if _, ok := object.(*corev1.Node); ok {
		return "node " + name
	}
	return "policy " + name
}
