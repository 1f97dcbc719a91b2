package fleet

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// build builds the manager and the agent.
func build(ctx context.Context) error {
	_, err := testenv.Build(ctx, managerProgram)
	if err == nil {
		_, err = testenv.Build(ctx, agentProgram)
	}
	return err
}

// buildControlPlane builds the control plane's programs where they are missing or of another version, which takes minutes
// and is passed on standard output. With KUBEBUILDER_ASSETS they are the user's to bring.
func buildControlPlane(ctx context.Context) error {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "kwok")); err != nil {
			return fmt.Errorf("KUBEBUILDER_ASSETS is %s, which has no kwok: `make controlplane` builds all that is needed into bin/k8s", dir)
		}
		return nil
	}
	script := exec.CommandContext(ctx, filepath.Join(testenv.Root(), "hack", "controlplane", "build.sh"))
	script.Stdout, script.Stderr = os.Stdout, os.Stderr
	// At SIGTERM it ends the compiler, too.
	script.Cancel = func() error { return script.Process.Signal(syscall.SIGTERM) }
	if err := script.Run(); err != nil {
		return fmt.Errorf("building the control plane: %w", err)
	}
	return nil
}

// installBus makes sure that there is a dbus-daemon: root on Debian and its likes gets the package, others get its name.
func installBus(ctx context.Context) error {
	script := exec.CommandContext(ctx, filepath.Join(testenv.Root(), "hack", "prerequisites.sh"), "dbus-daemon")
	if output, err := script.CombinedOutput(); err != nil {
		return fmt.Errorf("installing dbus-daemon: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}
