package verdict

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// pastBudget: no eviction leaves fewer pods available than the PodDisruptionBudget keeps. Those that went with their machine
// and have not been replaced are nobody's doing.
func pastBudget(h History) []Violation {
	var found []Violation
	available := map[string]bool{} // by UID
	involuntary, complete := 0, false
	for _, r := range h.Revisions {
		if r.Pod == nil {
			continue
		}
		uid := string(r.Pod.UID)
		was, is := available[uid], !r.Deleted && isAvailable(r.Pod)
		delete(available, uid)
		if is {
			available[uid] = true
		}
		complete = complete || len(available) >= h.MinAvailable
		switch {
		case is && !was:
			involuntary = max(0, involuntary-1)
		case was && !is && h.Removed[uid]:
			involuntary++
		case was && !is && complete && len(available)+involuntary < h.MinAvailable:
			found = append(found, Violation{r.Number, "past a PodDisruptionBudget", fmt.Sprintf("pod %s was evicted: %d are available, %d must be",
				r.Pod.Name, len(available), h.MinAvailable)})
		}
	}
	return found
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
