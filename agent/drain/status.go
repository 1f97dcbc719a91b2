package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/agent/volume"
)

// ReasonStuckTerminating is the reason of a Pod that is still there 30 s after its grace period: its kubelet is not done, or
// a finalizer holds it. The drain waits on; it never removes such a pod by force.
const ReasonStuckTerminating = "StuckTerminating"

// Pod is a pod in the way of a drain. Reason is one of EvictionBlocked (a PodDisruptionBudget, or a request that keeps
// failing), UndrainablePod (the policy), WaitCompleted (a rule waits for it) and StuckTerminating. Message is for people,
// in the API server's words where it refused. Budgets names the PodDisruptionBudgets that hold the pod back, as far as they
// are known.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	Reason, Message string
	Budgets         string
}

func comparePods(a, b Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// Status is how far a drain is: Remaining pods must still go, Evicted have gone since this Drain call began, and Blocked,
// sorted by namespace and name, are those of Remaining that do not go by themselves. Volumes are those that pods which stay
// use: the node may go on using them. Deleted is how many pods a rule with action Delete has removed since the call began,
// Deleting how many of them are among Remaining. Unread states why nobody knows any of this yet: the pods could not be read so
// far. Empty: they were. Back, sorted like Blocked and without a Reason, are pods that came back to the node after they had been
// asked to leave: they stay, and the drain does not wait for them. Left are the pods that Remaining counts, without a Reason: first
// those that are terminating, the one with the longest grace period first, with a Message that reports until when they may take.
type Status struct {
	Remaining, Evicted int
	Deleted, Deleting  int
	Volumes            []volume.Use
	Left               []Pod
	Blocked, Back      []Pod
	Unread             string
}

func (s Status) equal(other Status) bool {
	return s.Remaining == other.Remaining && s.Evicted == other.Evicted &&
		s.Unread == other.Unread && s.Deleted == other.Deleted && s.Deleting == other.Deleting &&
		slices.Equal(s.Volumes, other.Volumes) && slices.Equal(s.Left, other.Left) && slices.Equal(s.Blocked, other.Blocked) && slices.Equal(s.Back, other.Back)
}

// UndrainableError reports that Pods can never be evicted under the policy. Nothing was evicted.
type UndrainableError struct{ Pods []Pod }

// Error names all the pods.
func (e *UndrainableError) Error() string {
	parts := make([]string, 0, len(e.Pods))
	for _, p := range e.Pods {
		parts = append(parts, fmt.Sprintf("pod %s/%s: %s", p.Namespace, p.Name, p.Message))
	}
	return "the policy keeps pods on the node: " + strings.Join(parts, "; ")
}
