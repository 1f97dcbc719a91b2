package drain

import (
	"cmp"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/agent/volume"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// target is what the drain needs to know of a pod.
type target struct {
	types.NamespacedName
	uid    types.UID
	labels map[string]string
	// deleted is metadata.deletionTimestamp, which is when the grace period ends. Zero: not terminating.
	deleted  time.Time
	decision decision
	// controller is the pod's; "" where it has none.
	controller types.UID
	// tolerates: a cordon does not keep the pod off a node.
	tolerates bool
	// volumes are those of the pod that may be attached to its node.
	volumes []volume.Use
	// blocks: the pod keeps its node, whether it would have to go or not.
	blocks bool
	// pending pods and those that are not ready may get round a budget.
	pending, ready bool
}

// podState is a pod that must go, and how far it is.
type podState struct {
	target
	asked    bool      // a request was sent
	accepted bool      // the API server took the request; the watch reports the rest
	attempts int       // requests in a row that were not accepted
	denials  int       // of these, the last ones that were answered 403
	answer   verdict   // of the last request that was not accepted; a failure does not take the place of a refusal by budgets
	message  string    // why the last request was not accepted, for people
	due      time.Time // the next request is not sent earlier; zero: at once
	sentAt   int       // the change of budgets that was the last when the request was sent
}

// waits reports that nothing is to be sent for the pod: only the watch brings it forward. One that terminates already is asked to be
// quicker where the policy caps its grace period.
func (e *podState) waits() bool {
	return e.accepted || !e.deleted.IsZero() && e.decision.gracePeriod == 0 || e.decision.undrainable != "" ||
		e.decision.action == v1alpha1.DrainWaitCompleted
}

func (e *podState) pod(reason, message string) Pod {
	return Pod{Namespace: e.Namespace, Name: e.Name, UID: e.uid, Reason: reason, Message: message}
}

// held reports whether a budget holds the pod back: those of its namespace are worth a watch.
func (e *podState) held() bool { return e.answer == refused || e.answer == crowded }

// budgeted reports whether the API server would ask PodDisruptionBudgets before it lets the pod go: not for one that has not
// started, and not for a deletion.
func (e *podState) budgeted() bool {
	return !e.pending && e.deleted.IsZero() && e.decision.undrainable == "" && e.decision.action == v1alpha1.DrainEvict
}

func byName(a, b *podState) int {
	return cmp.Or(compareNames(a.NamespacedName, b.NamespacedName), cmp.Compare(a.uid, b.uid))
}

func compareNames(a, b types.NamespacedName) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
