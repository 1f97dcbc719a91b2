package scale

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// heartbeatPeriod is how often a kubelet writes the status of a node on which nothing changes (nodeStatusReportFrequency). Its
// Lease, which it renews every ten seconds, is left out: the manager and the agents do not look at it.
const heartbeatPeriod = 5 * time.Minute

// kubelets writes the heartbeats of all nodes, evenly over time. It counts those that were written, and fails with one that was not.
type kubelets struct {
	written atomic.Int64
	fail    context.CancelCauseFunc
}

// run writes heartbeats until ctx ends. A busy API server gets them later, never two at once for one writer.
func (k *kubelets) run(ctx context.Context, l *lab) {
	queue := make(chan string)
	for range writers {
		go func() {
			for name := range queue {
				k.beat(ctx, l, name)
			}
		}()
	}
	defer close(queue)
	ticker := l.clock.NewTicker(heartbeatPeriod / time.Duration(l.nodes))
	defer ticker.Stop()
	for i := 0; ; i++ {
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return
		}
		select {
		case queue <- nodeName(i % l.nodes):
		case <-ctx.Done():
			return
		}
	}
}

func (k *kubelets) beat(ctx context.Context, l *lab, node string) {
	_, err := l.kube.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, heartbeat(l.clock.Now()), metav1.PatchOptions{FieldManager: "kubelet"}, "status")
	switch {
	case err == nil:
		k.written.Add(1)
	case ctx.Err() == nil:
		k.fail(fmt.Errorf("writing the heartbeat of node %q: %w", node, err))
	}
}

// heartbeat is the patch that a kubelet sends when nothing has changed.
func heartbeat(now time.Time) []byte {
	type beat struct {
		Type              corev1.NodeConditionType `json:"type"`
		LastHeartbeatTime metav1.Time              `json:"lastHeartbeatTime"`
	}
	var beats []beat
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		beats = append(beats, beat{kind, metav1.NewTime(now)})
	}
	return encode(map[string]any{"status": map[string]any{"conditions": beats}})
}

// encode is the JSON of data that this package made and that has one.
func encode(data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	return text
}
