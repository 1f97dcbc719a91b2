package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
)

// noMetrics is the address that serves none.
const noMetrics = "0"

// MetricsTarget is where a pod of the operator serves its metrics: on this machine, and not at the port of its manifest.
type MetricsTarget struct {
	Pod     *corev1.Pod
	Address string
}

// MetricsTargets are those of the pods that run now, with Options.Metrics.
func MetricsTargets(f *Fleet) []MetricsTarget {
	f.kubelet.mu.Lock()
	defer f.kubelet.mu.Unlock()
	return slices.Collect(maps.Values(f.kubelet.targets))
}

// metricsAddress is for one pod, and stays the same when its program is started again.
func (k *kubelet) metricsAddress(ctx context.Context, pod *corev1.Pod) (string, error) {
	if !k.serve {
		return noMetrics, nil
	}
	port, err := embedded.FreePort(ctx)
	if err != nil {
		return "", err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.targets[pod.UID] = MetricsTarget{Pod: pod, Address: fmt.Sprintf("127.0.0.1:%d", port)}
	return k.targets[pod.UID].Address, nil
}
