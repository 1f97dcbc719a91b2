package embedded

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// claim is the annotation of a pod that a process stands for.
const claim = "embedded.reboot-operator.io/process"

// ClaimPod says that a process stands for the pod: when the pod is deleted it stays, as with a kubelet, until whoever runs
// the process deletes it with a grace period of 0.
func (c *Cluster) ClaimPod(ctx context.Context, pod *corev1.Pod) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:"true"}}}`, pod.UID, claim)
	_, err := c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("claiming pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
