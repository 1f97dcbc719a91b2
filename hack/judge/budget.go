package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// recent is the number of budget revisions that a violation shows.
const recent = 6

// budget tracks one PodDisruptionBudget. An available pod may be evicted only if the budget allows
// it, and enough pods must stay available. Pods that were lost with their machine and not yet
// replaced count against nobody.
type budget struct {
	selects      labels.Selector
	minAvailable int
	available    map[string]time.Time // by UID, and since when
	leave        map[string]bool      // by name: pods whose eviction the API server allowed
	involuntary  int
	complete     bool // as many pods as the budget requires were available once
	history      []string
}

func (b *budget) covers(namespace string, pod *corev1.Pod) bool {
	return pod.Namespace == namespace && b.selects.Matches(labels.Set(pod.Labels))
}

func shown(revision int64, b *policyv1.PodDisruptionBudget) string {
	return fmt.Sprintf("%d: %d healthy, %d must be, %d may go, of those that are going %v", revision, b.Status.CurrentHealthy,
		b.Status.DesiredHealthy, b.Status.DisruptionsAllowed, slices.Sorted(maps.Keys(b.Status.DisruptedPods)))
}

// pod takes in a change of a pod that the budget covers, and describes how it breaks the budget, or
// returns "".
func (b *budget) pod(name string, r Change) (broken string) {
	uid := string(r.Pod.UID)
	_, was := b.available[uid]
	current := !r.Gone && IsAvailable(r.Pod)
	switch {
	case !current:
		delete(b.available, uid)
	case !was:
		b.available[uid] = r.At
	}
	b.complete = b.complete || len(b.available) >= b.minAvailable
	description := ""
	switch {
	case current && !was:
		b.involuntary = max(0, b.involuntary-1)
	case was == current:
	case r.By == Machine:
		b.involuntary++
	case !b.leave[r.Pod.Name]:
		description = "without its permission"
	case b.complete && len(b.available)+b.involuntary < b.minAvailable:
		description = "and leaves too few"
	}
	if description == "" {
		return ""
	}
	return fmt.Sprintf("pod %s of budget %s goes %s: %d are available, %d went with their machines, %d must be; the budget's last revisions:\n      %s",
		r.Pod.Name, name, description, len(b.available), b.involuntary, b.minAvailable, strings.Join(b.history, "\n      "))
}

// cameBack is the time before the point of no return within which a pod may have come back to its
// node without being evicted again. The agent trusts a permission to evict for ten seconds.
const cameBack = 12 * time.Second

// IsAvailable reports whether a PodDisruptionBudget counts a pod as healthy: it is Ready and not
// being deleted.
func IsAvailable(pod *corev1.Pod) bool {
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
