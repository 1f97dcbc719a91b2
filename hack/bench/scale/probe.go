package scale

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// probeEvery is how often the API server is probed.
	probeEvery = 100 * time.Millisecond
	// annotationProbe is of no program: the manager's cache drops it.
	annotationProbe = "bench.example.com/probe"
)

// probe measures, until ctx ends, how long it takes from the start of a write to a Node until a watch reports it: the least
// that any program can do that reads a watch and writes. The node is one that needs no reboot.
func (l *lab) probe(ctx context.Context) (took []time.Duration, err error) {
	name := nodeName(l.nodes - 1)
	changes, err := l.client.Watch(ctx, &corev1.NodeList{}, client.MatchingFields{metav1.ObjectNameField: name})
	if err != nil {
		return nil, fmt.Errorf("watching node %q: %w", name, err)
	}
	defer changes.Stop()
	for i := 0; pause(ctx, probeEvery) == nil; i++ {
		from := time.Now()
		err := l.echo(ctx, name, strconv.Itoa(i), changes)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			return took, err
		}
		took = append(took, time.Since(from))
	}
	return took, nil
}

// echo writes a value to a node, and returns when a watch reports it.
func (l *lab) echo(ctx context.Context, node, value string, changes watch.Interface) error {
	if err := l.write(ctx, node, "bench", object{"metadata": object{"annotations": object{annotationProbe: value}}}); err != nil {
		return err
	}
	for change := range changes.ResultChan() {
		if seen, isNode := change.Object.(*corev1.Node); isNode && seen.Annotations[annotationProbe] == value {
			return nil
		}
	}
	return errors.New("the watch of the probe has ended")
}
