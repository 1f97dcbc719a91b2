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
	"github.com/reboot-operator/reboot-operator/internal/timing"
)

// ReasonStuckTerminating is the reason of a Pod that still exists 30 s after its grace period,
// because its kubelet is not done or a finalizer holds it. The drain keeps waiting and never
// removes such a pod by force.
const ReasonStuckTerminating = "StuckTerminating"

// Pod is a pod that holds up a drain. Reason is EvictionBlocked (a PodDisruptionBudget, or a
// request that keeps failing), UndrainablePod (the policy), WaitCompleted (a rule waits for it) or
// StuckTerminating. Message is for people, in the API server's words if it refused. Budgets names
// the known PodDisruptionBudgets that block the pod.
type Pod struct {
	Namespace, Name string
	UID             types.UID
	Reason, Message string
	Budgets         string
	// Recent reports whether the first request was refused only seconds ago. Most budgets allow the
	// eviction soon.
	Recent bool
}

func comparePods(a, b Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// Status is the state of a drain.
type Status struct {
	// Remaining is the number of pods that must still leave. Evicted is the number that have left
	// since this Drain call began.
	Remaining, Evicted int
	// Deleted is the number of pods that rules with action Delete have removed since then. Deleting
	// is the number of them that are among Remaining.
	Deleted, Deleting int
	// Volumes are the volumes of pods that stay. The node may keep using them.
	Volumes []volume.Use
	// Left are the pods that Remaining counts, without a Reason. Terminating pods come first,
	// sorted by the end of their grace period, latest first. Their Message says until when they may
	// take.
	Left []Pod
	// Blocked are the pods of Remaining that need something else to happen before they leave,
	// sorted by namespace and name.
	Blocked []Pod
	// Back are the pods that came back to the node after they were evicted, without a Reason and
	// sorted like Blocked. They stay, and the drain does not wait for them.
	Back []Pod
	// Unread says why the pods could not be read yet, so that the other fields are unknown. It is
	// empty if they were read.
	Unread string
}

// UndrainableError means that Pods can never be evicted under the policy. Nothing was evicted.
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
	// stuckAfter is the time after its grace period from which a pod counts as stuck. It allows for
	// the kubelet's clean-up and for clock differences.
	stuckAfter = 30 * time.Second
	// failuresHidden is the number of failures in a row that are not reported.
	failuresHidden = 2
	// recentFor is the time after the first refusal for which a pod is Recent.
	recentFor = 5 * time.Second
)

// status returns the drain's state for reporting.
func (p *progress) status(now time.Time) Status {
	going := p.sorted()
	s := Status{
		Remaining: len(going), Evicted: p.evicted, Deleted: len(p.deleted), Volumes: p.staying.list(), Left: podsOf(going),
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

// podsOf returns the pods that must leave. Those that terminate last come first, because they alone
// may make the drain too long.
func podsOf(going []*podState) []Pod {
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

// blocked reports whether the pod needs something else to happen before it leaves.
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
		pod.Recent = now.Before(e.failedAt.Add(recentFor))
		if e.answer == refused {
			pod.Budgets = p.budgets.of(e.target)
		}
		return pod, e.answer == refused || e.attempts > failuresHidden
	}
}

// matures returns the time at which the next pod stops being Recent, or zero.
func (p *progress) matures(now time.Time) (at time.Time) {
	for _, e := range p.going {
		if pod, blocked := p.blocked(e, now); blocked && pod.Recent {
			at = timing.Earliest(at, e.failedAt.Add(recentFor))
		}
	}
	return at
}

// stuck returns the pod as one that still exists long after its grace period.
func (s *podState) stuck() Pod {
	why := fmt.Sprintf("still there after its grace period, which ended at %s", timing.Instant(s.deleted))
	if s.finalizers != "" {
		why += "; finalizers keep it: " + s.finalizers
	}
	return s.pod(ReasonStuckTerminating, why)
}

// maxFinalizers is the largest number of finalizers in a message about a pod.
const maxFinalizers = 3

// undrainable returns the pods that the policy never removes.
func (p *progress) undrainable() []Pod {
	var pods []Pod
	for _, e := range p.sorted() {
		if e.decision.undrainable != "" {
			pods = append(pods, e.pod(string(v1alpha1.ReasonUndrainablePod), e.decision.undrainable))
		}
	}
	return pods
}

// findings returns the result of a check of the pods, and the time at which it changes without an
// event, or zero.
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

// refusedNow returns the pods whose budget allows no eviction now, although it may when other pods
// are healthy.
func (p *progress) refusedNow() (pods []Pod) {
	for _, e := range p.sorted() {
		if stuck, closed := p.budgets.foretell(e); stuck == "" && closed == "" && e.budgeted() && p.budgets.refuse(e) {
			pods = append(pods, e.pod(string(v1alpha1.ReasonUndrainablePod), fmt.Sprintf("PodDisruptionBudget %s allows no eviction now", p.budgets.of(e.target))))
		}
	}
	return pods
}

// blockerMessage is the message for a pod that must not be disrupted and appeared after the check
// before the cordon.
const blockerMessage = "gates.blockingPods lets it keep its node until it has completed"

// blockers are the pods that must not be disrupted.
type blockers map[types.UID]target

// list returns them in order, each with the message.
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
