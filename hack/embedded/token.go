package embedded

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tokenLife is longer than anybody keeps an embedded cluster running: nobody rotates these tokens.
const tokenLife = 7 * 24 * time.Hour

// Token asks for a token of a ServiceAccount. Bound to a pod, as a kubelet's are, it carries the pod's and the node's name
// and dies with the pod. A nil pod: bound to nothing.
func (c *Cluster) Token(ctx context.Context, namespace, serviceAccount string, pod *corev1.Pod) (string, error) {
	seconds := int64(tokenLife / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	}
	answer, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount, request, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of %s/%s: %w", namespace, serviceAccount, err)
	}
	return answer.Status.Token, nil
}
