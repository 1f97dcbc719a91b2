package lifecycle

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"

	"github.com/reboot-operator/reboot-operator/internal/message"
)

// Recorder records events with notes that are short enough for the API server. Notes quote texts of
// services, hooks and logind, which may be of any length.
type Recorder struct{ events.EventRecorder }

// Eventf implements events.EventRecorder.
func (r Recorder) Eventf(regarding, related runtime.Object, kind, reason, action, note string, args ...any) { //nolint:revive // the interface has seven
	r.EventRecorder.Eventf(regarding, related, kind, reason, action, "%s", message.Shorten(message.MaxNoteBytes, fmt.Sprintf(note, args...)))
}

// NodeReference returns a reference to a Node without its version, so that repeated events become a
// series. It has the UID, by which `kubectl describe node` finds events.
func NodeReference(name string, uid types.UID) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: uid}
}
