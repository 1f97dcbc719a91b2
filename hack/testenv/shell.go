package testenv

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Shell runs a script as an administrator would in a terminal: in the folder, with the kubectl of the control plane and a
// KUBECONFIG of the API server, which it writes into the folder. It returns what the script wrote to standard output; an
// error holds what it wrote to standard error.
func (e *Environment) Shell(ctx context.Context, folder, script string) (string, error) {
	kubeconfig := filepath.Join(folder, "kubeconfig")
	if err := WriteKubeconfig(kubeconfig, e.Config); err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "sh", "-euc", script)
	command.Dir = folder
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+Assets()+string(os.PathListSeparator)+os.Getenv("PATH"))
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return stdout.String(), fmt.Errorf("running %s: %w: %s", script, err, stderr.String())
	}
	return stdout.String(), nil
}
