package drain

import corev1 "k8s.io/api/core/v1"

// claims counts the volumes of a pod that are attached to its node: those of claims. One that has completed has let go.
func claims(pod *corev1.Pod) int {
	if completed(pod) {
		return 0
	}
	count := 0
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
			count++
		}
	}
	return count
}

// kept is how many volumes the pods that stay use.
func (p *progress) kept() int {
	sum := 0
	for _, volumes := range p.staying {
		sum += volumes
	}
	return sum
}
