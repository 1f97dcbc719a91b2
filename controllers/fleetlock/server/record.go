package server

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/fleetlock"
	"github.com/reboot-operator/reboot-operator/internal/nodepatch"
)

// writeEvery bounds the writes of a Node: everybody who reaches the port can ask.
const writeEvery = time.Minute

// requests records on Nodes that their clients ask for a reboot, at most once a minute on each.
type requests struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// record writes the request of a Node's client, unless the Node shows it already. The write is a
// compare-and-swap, because another replica may have recorded it.
func (r *requests) record(ctx context.Context, nodes client.Writer, node *corev1.Node, id string, now time.Time) {
	request := fleetlock.Record(node, id, now)
	if request == nil || !r.take(node.Name, now) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readLimit)
	defer cancel()
	patch := nodepatch.New(node.ResourceVersion).Annotate(v1alpha1.AnnotationFleetLock, request.String())
	target := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}
	err := nodes.Patch(ctx, target, patch, client.FieldOwner(v1alpha1.FieldOwnerManager))
	switch {
	case err == nil:
		ctrl.LoggerFrom(ctx).Info("Recorded that a FleetLock client asks for a reboot", "Node", klog.KObj(node), "id", id)
	case apierrors.IsConflict(err): // Nothing was written, and the newer Node is on its way to the cache.
		r.giveBack(node.Name)
	default:
		ctrl.LoggerFrom(ctx).Error(err, "Cannot record that a FleetLock client asks for a reboot", "Node", klog.KObj(node))
	}
}

// take reports whether a Node may be written now.
func (r *requests) take(node string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.last, func(_ string, last time.Time) bool { return !now.Before(last.Add(writeEvery)) })
	if _, found := r.last[node]; found {
		return false
	}
	if r.last == nil {
		r.last = map[string]time.Time{}
	}
	r.last[node] = now
	return true
}

// giveBack lets a Node be written that was not.
func (r *requests) giveBack(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, node)
}
