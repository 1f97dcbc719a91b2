// Package eventing holds what the events of both programs have in common.
package eventing

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/reboot-operator/reboot-operator/internal/message"
)

// Recorder shortens notes to what the API server takes: services, hooks and logind are quoted in them, and their texts have no
// bound.
type Recorder struct{ events.EventRecorder }

// Eventf implements events.EventRecorder.
func (r Recorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) { //nolint:revive // the interface has seven
	r.EventRecorder.Eventf(regarding, related, kind, reason, action, "%s", message.Shorten(message.MaxNoteBytes, fmt.Sprintf(note, args...)))
}

// Node refers to a Node in all its versions, so that an event that is repeated becomes a series. `kubectl describe node` finds
// events by the UID.
func Node(name string, uid types.UID) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: uid}
}
