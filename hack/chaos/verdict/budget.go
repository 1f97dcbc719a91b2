package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// recent is how many revisions of a budget a violation tells of.
const recent = 6

// pastBudget: a pod that is available goes only with the leave of its PodDisruptionBudget, and none goes where fewer would be
// available than the budget keeps. Those that went with their machine and have not been replaced are nobody's doing.
func pastBudget(h History) []Violation {
	b := budget{h: h, available: map[string]bool{}, leave: map[string]bool{}}
	for _, r := range h.Revisions {
		switch {
		case r.Budget != nil:
			b.seen(r)
		case r.Pod != nil:
			b.pod(r)
		}
	}
	return b.found
}

// budget is what is known of the pods' only PodDisruptionBudget.
type budget struct {
	h           History
	available   map[string]bool // by UID
	leave       map[string]bool // by name, pods that the API server let go
	involuntary int
	complete    bool // all that the budget keeps were there
	history     []string
	found       []Violation
}

func (b *budget) seen(r Revision) {
	for name := range r.Budget.Status.DisruptedPods {
		b.leave[name] = true
	}
	b.history = append(b.history, tell(r.Number, r.Budget))
}

func tell(revision int64, b *policyv1.PodDisruptionBudget) string {
	return fmt.Sprintf("%d: %d healthy, %d must be, %d may go, of those that are going %v", revision, b.Status.CurrentHealthy,
		b.Status.DesiredHealthy, b.Status.DisruptionsAllowed, slices.Sorted(maps.Keys(b.Status.DisruptedPods)))
}

func (b *budget) pod(r Revision) {
	uid := string(r.Pod.UID)
	was, is := b.available[uid], !r.Deleted && isAvailable(r.Pod)
	delete(b.available, uid)
	if is {
		b.available[uid] = true
	}
	b.complete = b.complete || len(b.available) >= b.h.MinAvailable
	switch {
	case is && !was:
		b.involuntary = max(0, b.involuntary-1)
	case was && !is && b.h.Removed[uid]:
		b.involuntary++
	case was && !is:
		b.evicted(r)
	}
}

func (b *budget) evicted(r Revision) {
	if !b.leave[r.Pod.Name] {
		b.violated(r, "without the leave of its PodDisruptionBudget")
	} else if b.complete && len(b.available)+b.involuntary < b.h.MinAvailable {
		b.violated(r, "past a PodDisruptionBudget")
	}
}

func (b *budget) violated(r Revision, what string) {
	last := b.history[max(0, len(b.history)-recent):]
	b.found = append(b.found, Violation{r.Number, what, fmt.Sprintf("pod %s is gone: %d are available, %d went with their machines, %d must be; the budget's last revisions:\n      %s",
		r.Pod.Name, len(b.available), b.involuntary, b.h.MinAvailable, strings.Join(last, "\n      "))})
}

func isAvailable(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
