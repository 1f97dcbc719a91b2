package embedded

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// kubectl runs as the administrator.
type kubectl struct{ path, kubeconfig, home string }

// Apply applies a manifest, a folder of manifests, or a kustomization, by `kubectl apply`.
func (k *kubectl) Apply(ctx context.Context, path string) error {
	flag := "-f"
	if _, err := os.Stat(filepath.Join(path, "kustomization.yaml")); err == nil {
		flag = "-k"
	}
	_, err := k.Kubectl(ctx, nil, "apply", "--server-side", flag, path)
	return err
}

// ApplyManifest applies a manifest by `kubectl apply`.
func (k *kubectl) ApplyManifest(ctx context.Context, manifest []byte) error {
	_, err := k.Kubectl(ctx, manifest, "apply", "--server-side", "-f", "-")
	return err
}

// KubectlPath is the path of kubectl.
func (k *kubectl) KubectlPath() string { return k.path }

// Shell runs a script in a folder with this kubectl, as an administrator would in a terminal. It
// returns the standard output; an error contains the standard error.
func (k *kubectl) Shell(ctx context.Context, folder, script string) (string, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, "sh", "-euc", script)
	command.Dir, command.Stdout, command.Stderr = folder, &stdout, &stderr
	command.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig, "PATH="+filepath.Dir(k.path)+string(os.PathListSeparator)+os.Getenv("PATH"))
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("running %s: %w: %s", script, err, stderr.String())
	}
	return stdout.String(), nil
}

// Kubectl runs kubectl as the administrator, with text on its standard input, and returns its
// standard output.
func (k *kubectl) Kubectl(ctx context.Context, stdin []byte, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, k.path, args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig, "HOME="+k.home)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("running kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
