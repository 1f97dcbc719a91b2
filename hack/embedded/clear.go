package embedded

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
)

// first are the namespaces of an empty cluster.
var first = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}

// cleared are the resources that Clear deletes, owners before what they would make anew.
var cleared = []schema.GroupVersionResource{
	{Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "daemonsets"},
	{Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"},
	{Version: "v1", Resource: "nodes"},
	{Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "namespaces"},
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
}

// Clear deletes the objects of manifests and all nodes, workloads, namespaces, kinds and events, and returns when they are gone, so
// that the next user finds an empty cluster. Whatever ran in it has ended before.
func (c *Cluster) Clear(ctx context.Context, manifests ...[]byte) error {
	for _, manifest := range manifests {
		if _, err := c.Kubectl(ctx, manifest, "delete", "--ignore-not-found", "--wait=false", "-f", "-"); err != nil {
			return err
		}
	}
	api, err := metadata.NewForConfig(c.config)
	if err != nil {
		return fmt.Errorf("building a client: %w", err)
	}
	var left []string
	var failed error
	err = c.await(ctx, "the cluster to be empty", func(ctx context.Context) bool {
		left, failed = clearOnce(ctx, api)
		return len(left) == 0 && failed == nil
	})
	if err != nil {
		return fmt.Errorf("%w: %v are left (%w)", err, left, failed)
	}
	return c.client.CoreV1().Events(metav1.NamespaceDefault).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
}

// clearOnce asks for the end of all that is there, and names it.
func clearOnce(ctx context.Context, api metadata.Interface) (left []string, err error) {
	for _, resource := range cleared {
		found, err := api.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return left, fmt.Errorf("listing %s: %w", resource.Resource, err)
		}
		for _, object := range found.Items {
			if resource.Resource == "namespaces" && slices.Contains(first, object.Name) {
				continue
			}
			left = append(left, resource.Resource+" "+object.Name)
			options := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
			if resource.Group == "apps" { // it goes when its controller has let go of it, and makes no pod any more
				options = metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}
			}
			err := api.Resource(resource).Namespace(object.Namespace).Delete(ctx, object.Name, options)
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) { // a namespace that is ending
				return left, fmt.Errorf("deleting %s %s: %w", resource.Resource, object.Name, err)
			}
		}
	}
	return left, nil
}
