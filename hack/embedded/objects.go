package embedded

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

const (
	// fakeNode and its value are the annotation by which kwok recognizes the nodes that it
	// simulates.
	fakeNode      = "kwok.x-k8s.io/node"
	fakeNodeValue = "fake"
	// claim is the annotation of a pod that a process represents.
	claim = "embedded.reboot-operator.io/process"
	// tokenLife is longer than any embedded cluster runs, because nothing rotates these tokens.
	tokenLife = 7 * 24 * time.Hour
)

// AddNode adds a simulated node and returns when it is Ready.
func (c *Cluster) AddNode(ctx context.Context, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelOSStable: "linux"},
		Annotations: map[string]string{fakeNode: fakeNodeValue},
	}}
	nodes := c.client.CoreV1().Nodes()
	if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating node %q: %w", name, err)
	}
	return c.await(ctx, "node "+name+" to be Ready", func(ctx context.Context) bool {
		node, err := nodes.Get(ctx, name, metav1.GetOptions{})
		// A new Node has the taint of a node that is not Ready. It may lose that taint before kwok
		// has reported anything.
		return err == nil && len(node.Spec.Taints) == 0 && node.Status.NodeInfo.BootID != ""
	})
}

// ClaimPod marks a pod that a process represents. As with a kubelet, the pod stays after its
// deletion until the process's owner deletes it with a grace period of 0.
func (c *Cluster) ClaimPod(ctx context.Context, pod *corev1.Pod) error {
	patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:"true"}}}`, pod.UID, claim)
	_, err := c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("claiming pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// Token requests a token of a ServiceAccount. If it is bound to a pod, as a kubelet's tokens are,
// it carries the names of the pod and its node, and expires with the pod. If pod is nil, it is not
// bound.
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

// SigningKey returns the key that signs ServiceAccount tokens, for tests with tokens that the API
// server would not issue.
func (c *Cluster) SigningKey() (*ecdsa.PrivateKey, error) {
	path := filepath.Join(c.Dir, "accounts.key")
	key, err := keyutil.PrivateKeyFromFile(path)
	if err != nil {
		return nil, err // it names the file
	}
	private, ok := key.(*ecdsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s is a %T, want a key of ECDSA", path, key)
	}
	return private, nil
}

// InstallKind installs the project's kind and returns when it is served.
func (c *Cluster) InstallKind(ctx context.Context) error {
	if err := c.Apply(ctx, filepath.Join(testenv.Root(), "config", "crd")); err != nil {
		return err
	}
	return c.AwaitKinds(ctx)
}

// AwaitKinds waits until the API server serves the kinds of all CustomResourceDefinitions. `kubectl
// wait` cannot be used: it fails for a new one without conditions.
func (c *Cluster) AwaitKinds(ctx context.Context) error {
	text, err := c.Kubectl(ctx, nil, "get", "crd", "--output=json")
	if err != nil {
		return err
	}
	var kinds struct {
		Items []*apiextensionsv1.CustomResourceDefinition `json:"items"`
	}
	if err := json.Unmarshal([]byte(text), &kinds); err != nil {
		return fmt.Errorf("reading CustomResourceDefinitions: %w", err)
	}
	patience := envtest.CRDInstallOptions{MaxTime: 30 * time.Second, PollInterval: 50 * time.Millisecond}
	if err := envtest.WaitForCRDs(c.Config(), kinds.Items, patience); err != nil {
		return fmt.Errorf("waiting until the kinds are served: %w", err)
	}
	return nil
}
