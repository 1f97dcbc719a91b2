package scale

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// probeEvery is how often the API server is probed.
	probeEvery = 100 * time.Millisecond
	// annotationProbe is nobody's: the manager's cache drops it.
	annotationProbe = "bench.example.com/probe"
)

// probe measures, until ctx ends, how long it takes from the start of a write to a Node until a watch reports it: the least
// that anybody can do who reads a watch and writes. The node is one that needs no reboot.
func (l *lab) probe(ctx context.Context) (took []time.Duration, err error) {
	nodes, name := l.kube.CoreV1().Nodes(), nodeName(l.nodes-1)
	changes, err := nodes.Watch(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
	if err != nil {
		return nil, fmt.Errorf("watching node %q: %w", name, err)
	}
	defer changes.Stop()
	for i := 0; l.pause(ctx, probeEvery) == nil; i++ {
		value, from := strconv.Itoa(i), l.clock.Now()
		patch := encode(map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotationProbe: value}}})
		if _, err := nodes.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			if ctx.Err() != nil {
				break
			}
			return took, fmt.Errorf("writing node %q: %w", name, err)
		}
		for seen := ""; seen != value; {
			change, open := <-changes.ResultChan()
			node, isNode := change.Object.(*corev1.Node)
			switch {
			case ctx.Err() != nil:
				return took, nil
			case !open || !isNode:
				return took, errors.New("the watch of the probe has ended")
			}
			seen = node.Annotations[annotationProbe]
		}
		took = append(took, l.clock.Since(from))
	}
	return took, nil
}
