package embedded

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Apply applies a manifest, a folder of manifests, or a kustomization, by `kubectl apply`.
func (c *Cluster) Apply(ctx context.Context, path string) error {
	flag := "-f"
	if _, err := os.Stat(filepath.Join(path, "kustomization.yaml")); err == nil {
		flag = "-k"
	}
	_, err := c.Kubectl(ctx, nil, "apply", "--server-side", flag, path)
	return err
}

// ApplyManifest applies a manifest by `kubectl apply`.
func (c *Cluster) ApplyManifest(ctx context.Context, manifest []byte) error {
	_, err := c.Kubectl(ctx, manifest, "apply", "--server-side", "-f", "-")
	return err
}

// KubectlPath is the path of kubectl.
func (c *Cluster) KubectlPath() string { return c.asset("kubectl") }

// Kubectl runs kubectl as the administrator, with text on its standard input, and returns its standard output.
func (c *Cluster) Kubectl(ctx context.Context, stdin []byte, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	kubectl := exec.CommandContext(ctx, c.KubectlPath(), args...)
	kubectl.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig, "HOME="+c.Dir)
	kubectl.Stdin, kubectl.Stdout, kubectl.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	if err := kubectl.Run(); err != nil {
		return "", fmt.Errorf("running kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// AwaitKinds waits until the API server serves the kinds of all CustomResourceDefinitions. Not by `kubectl wait`, to which it is an
// error that a new one has no conditions at all.
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
