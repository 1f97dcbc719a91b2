package fleet

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
)

// Recorder keeps the timeline of a cluster's Nodes. It sees every revision, which an informer's cache would not.
type Recorder struct {
	mu   sync.Mutex
	line timeline.Timeline
}

// Record begins with the Nodes there are and records until ctx ends.
func Record(ctx context.Context, client kubernetes.Interface) (*Recorder, error) {
	r := &Recorder{}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	for i := range nodes.Items {
		r.observe(watch.Event{Type: watch.Added, Object: &nodes.Items[i]})
	}
	revisions, err := watchtools.NewRetryWatcherWithContext(ctx, nodes.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return client.CoreV1().Nodes().Watch(ctx, options)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watching nodes: %w", err)
	}
	go func() {
		for event := range revisions.ResultChan() {
			r.observe(event)
		}
	}()
	return r, nil
}

func (r *Recorder) observe(event watch.Event) {
	node, ok := event.Object.(*corev1.Node)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if event.Type == watch.Deleted {
		r.line.Forget(time.Now(), node.Name)
		return
	}
	r.line.Observe(time.Now(), node)
}

// Read lets f look at the timeline so far. What its methods return are copies; the timeline itself is not f's to keep.
func (r *Recorder) Read(f func(*timeline.Timeline)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f(&r.line)
}
