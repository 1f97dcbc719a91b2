package server

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/fleetlock"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

// announceEvery limits the events about refused clients, because anyone who can reach the port can
// send requests.
const announceEvery = time.Minute

// maxAnnounced is the number of Nodes that get an event. All machines of a pool may be clones.
const maxAnnounced = 3

// announcer emits at most one event per reason and minute.
type announcer struct {
	recorder  events.EventRecorder
	namespace string
	clock     clock.PassiveClock

	mu   sync.Mutex
	last map[v1alpha1.Reason]time.Time
}

// refused emits an event about some Nodes that a client may mean, or about the operator's namespace
// without such a Node.
func (a *announcer) refused(nodes []corev1.Node, answer fleetlock.Answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	if last, found := a.last[answer.Reason]; found && now.Before(last.Add(announceEvery)) {
		return
	}
	a.last[answer.Reason] = now
	emit := func(regarding *corev1.ObjectReference) {
		a.recorder.Eventf(regarding, nil, corev1.EventTypeWarning, string(answer.Reason), "AnswerFleetLock", "%s", answer.Message)
	}
	if len(nodes) == 0 {
		emit(&corev1.ObjectReference{APIVersion: "v1", Kind: "Namespace", Name: a.namespace})
	}
	for i := range nodes[:min(len(nodes), maxAnnounced)] {
		emit(lifecycle.NodeReference(nodes[i].Name, nodes[i].UID))
	}
}
