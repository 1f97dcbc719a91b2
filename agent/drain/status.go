package drain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/agent/volume"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// ReasonStuckTerminating is the reason of a Pod that is still there 30 s after its grace period. Its kubelet is not done, or a
// finalizer holds it. The drain waits on; it never removes such a pod by force.
const ReasonStuckTerminating = "StuckTerminating"

// Pod is a pod in the way of a drain. Reason is one of EvictionBlocked (a PodDisruptionBudget, or a request that keeps
// failing), UndrainablePod (the policy), WaitCompleted (a rule waits for it) and StuckTerminating. Message is for people,
// as the API server puts it where it refused. Budgets names the PodDisruptionBudgets that hold the pod back, as far as they
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

// Status is how far a drain is.
type Status struct {
	// Remaining pods must still go, and Evicted have gone since this Drain call began.
	Remaining, Evicted int
	// Deleted is how many pods a rule with action Delete has removed since then, and Deleting how many of them are among Remaining.
	Deleted, Deleting int
	// Volumes are those that pods which stay use: the node may go on using them.
	Volumes []volume.Use
	// Left are the pods that Remaining counts, without a Reason. Those that are terminating come first, the longest grace period before
	// the others. Their Message reports until when they may take.
	Left []Pod
	// Blocked are those of Remaining that do not go by themselves, sorted by namespace and name.
	Blocked []Pod
	// Back, without a Reason and sorted like Blocked, are pods that came back to the node after they had been asked to leave. They stay,
	// and the drain does not wait for them.
	Back []Pod
	// Unread states why the pods could not be read so far, and none of this is known yet. Empty: they were.
	Unread string
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

const (
	// stuckAfter is how long after its grace period a pod is called stuck: time for the kubelet to clean up, and for clocks
	// that differ.
	stuckAfter = 30 * time.Second
	// failuresHidden is how many failures in a row are not reported.
	failuresHidden = 2
)

// status is the drain as others see it.
func (p *progress) status(now time.Time) Status {
	going := p.sorted()
	s := Status{
		Remaining: len(going), Evicted: p.left, Deleted: len(p.deleted), Volumes: p.staying.list(), Left: left(going),
		Back: p.comebacks.back(), Unread: p.unread,
	}
	for _, e := range going {
		if p.deleted[e.uid] {
			s.Deleting++
		}
		if pod, blocked := p.blocked(e, now); blocked {
			s.Blocked = append(s.Blocked, pod)
		}
	}
	return s
}

// left lists the pods that must go. Those that end last come first: nothing is in their way, and yet the drain may be too long.
func left(going []*podState) []Pod {
	pods := make([]Pod, 0, len(going))
	last := func(a, b *podState) int { return b.deleted.Compare(a.deleted) }
	for _, e := range slices.SortedStableFunc(slices.Values(going), last) {
		message := ""
		if !e.deleted.IsZero() {
			message = "terminating until " + timing.Instant(e.deleted)
		}
		pods = append(pods, e.pod("", message))
	}
	return pods
}

// blocked reports whether the pod is in the way by itself, not just in the middle of going.
func (p *progress) blocked(e *podState, now time.Time) (Pod, bool) {
	switch {
	case !e.deleted.IsZero():
		return e.stuck(), !now.Before(e.deleted.Add(stuckAfter))
	case e.decision.undrainable != "":
		return e.pod(string(v1alpha1.ReasonUndrainablePod), e.decision.undrainable), true
	case e.decision.action == v1alpha1.DrainWaitCompleted:
		return e.pod(string(v1alpha1.DrainWaitCompleted), "a rule waits until it has completed"), true
	case e.accepted:
		return Pod{}, false
	case e.answer == crowded:
		pod := e.pod(v1alpha1.EventEvictionBlocked, crowdedMessage(p.budgets.of(e.target)))
		pod.Budgets = p.budgets.of(e.target)
		return pod, true
	default:
		pod := e.pod(v1alpha1.EventEvictionBlocked, e.message)
		if e.answer == refused {
			pod.Budgets = p.budgets.of(e.target)
		}
		return pod, e.answer == refused || e.attempts > failuresHidden
	}
}

// stuck is the pod as one that is still there long after its grace period.
func (e *podState) stuck() Pod {
	why := fmt.Sprintf("still there after its grace period, which ended at %s", timing.Instant(e.deleted))
	if len(e.finalizers) > 0 {
		why += "; finalizers keep it: " + message.Names(e.finalizers, maxFinalizers)
	}
	return e.pod(ReasonStuckTerminating, why)
}

// maxFinalizers is the largest number of finalizers in a message about a pod.
const maxFinalizers = 3

// undrainable lists the pods that the policy never lets go.
func (p *progress) undrainable() []Pod {
	var pods []Pod
	for _, e := range p.sorted() {
		if e.decision.undrainable != "" {
			pods = append(pods, e.pod(string(v1alpha1.ReasonUndrainablePod), e.decision.undrainable))
		}
	}
	return pods
}

// findings holds the result of a look at the pods, and the time at which it changes by itself, or
// the zero time if it does not.
func (p *progress) findings(now time.Time) (f Findings, changes time.Time) {
	f = Findings{Kept: p.undrainable(), Blocking: p.blocking.list("")}
	for _, e := range p.sorted() {
		stuck, closed := p.budgets.foretell(e)
		late := e.deleted.Add(stuckAfter)
		switch {
		case e.deleted.IsZero():
		case now.Before(late):
			changes = timing.Earliest(changes, late)
		default:
			f.Guarded = append(f.Guarded, e.stuck())
		}
		if stuck != "" {
			f.Guarded = append(f.Guarded, e.pod(string(v1alpha1.ReasonUndrainablePod), stuck))
		}
		if closed != "" {
			f.Closed = append(f.Closed, e.pod(string(v1alpha1.ReasonUndrainablePod), closed))
		}
	}
	return f, changes
}

// blockerMessage is reported of a pod that came after the look before the cordon.
const blockerMessage = "gates.blockingPods lets it keep its node until it has completed"

// blockers are the pods that keep their node.
type blockers map[types.UID]target

// list has them in order, each with the message.
func (b blockers) list(message string) []Pod {
	if len(b) == 0 {
		return nil
	}
	pods := make([]Pod, 0, len(b))
	for _, t := range b {
		pods = append(pods, Pod{Namespace: t.Namespace, Name: t.Name, UID: t.uid, Reason: string(v1alpha1.ReasonBlockingPod), Message: message})
	}
	slices.SortFunc(pods, comparePods)
	return pods
}
