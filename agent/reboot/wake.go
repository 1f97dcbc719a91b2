package reboot

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Wake lets what happens outside the API server (an engine's report, the end of a drain) cause a reconcile.
type Wake struct {
	node     string
	triggers chan event.GenericEvent
}

// NewWake makes a Wake for the agent of a node. Nothing has triggered it yet.
func NewWake(node string) Wake { return Wake{node: node, triggers: make(chan event.GenericEvent, 1)} }

// Trigger causes a reconcile that begins after now. It never blocks: one that is pending counts for this one.
func (w Wake) Trigger() {
	select {
	case w.triggers <- event.GenericEvent{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.node}}}:
	default:
	}
}

func (w Wake) source() source.Source {
	return source.Channel(w.triggers, &handler.EnqueueRequestForObject{})
}
