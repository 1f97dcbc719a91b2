package embedded

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The annotation by which kwok knows the nodes that it simulates.
const (
	fakeNode      = "kwok.x-k8s.io/node"
	fakeNodeValue = "fake"
)

// AddNode adds a simulated node and returns when it is Ready. Its labels may be nil.
func (c *Cluster) AddNode(ctx context.Context, name string, labels map[string]string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"},
		Annotations: map[string]string{fakeNode: fakeNodeValue},
	}}
	maps.Copy(node.Labels, labels)
	nodes := c.client.CoreV1().Nodes()
	if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating node %q: %w", name, err)
	}
	return c.await(ctx, "node "+name+" to be Ready", func(ctx context.Context) bool {
		node, err := nodes.Get(ctx, name, metav1.GetOptions{})
		return err == nil && NodeIsReady(node) && len(node.Spec.Taints) == 0
	})
}

// NodeIsReady tells whether the node's condition Ready is True.
func NodeIsReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
