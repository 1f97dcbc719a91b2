package machine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/reboot-operator/reboot-operator/hack/hosttest"
	"github.com/reboot-operator/reboot-operator/hack/judge"
)

// Host is a machine with Flatcar that an agent reaches through a root folder and a real bus with
// update_engine and logind.
type Host struct {
	*Machine
	// Root represents the host's root file system.
	Root string
	// Bus is its system bus, with Engine and Logind on it.
	Bus    *hosttest.Bus
	Engine *hosttest.UpdateEngine
	Logind *hosttest.Logind
}

// NewHost returns a host of a version for a test. It has not booted yet, and it ends with the test.
// Errors fail the test.
func NewHost(t hosttest.TB, name, version string) *Host {
	t.Helper()
	root := t.TempDir()
	h := &Host{Machine: New(name, filepath.Join(root, "boot_id"), nil), Root: root, Bus: hosttest.StartFor(t)}
	err := errors.Join(os.Mkdir(filepath.Join(h.Root, "etc"), 0o755), h.Install(version))
	if err == nil {
		h.Engine, err = hosttest.StartUpdateEngine(h.Bus)
	}
	if err == nil {
		h.Logind, err = hosttest.StartLogind(h.Bus)
	}
	if err != nil {
		t.Fatalf("starting a host: %v", err)
	}
	return h
}

// Install changes the version of the host.
func (h *Host) Install(version string) error {
	release := fmt.Sprintf("ID=flatcar\nVERSION_ID=%q\n", version)
	return os.WriteFile(filepath.Join(h.Root, "etc", "os-release"), []byte(release), 0o600)
}

// Boot begins another boot, with nothing staged and no shutdown under way. The bus keeps running.
func (h *Host) Boot() error {
	h.Engine.SetStatus(hosttest.Idle())
	return errors.Join(h.Freeze(), h.Logind.Start())
}

// Freeze begins another boot that keeps the state of all services, as if they had been frozen while
// the host was down.
func (h *Host) Freeze() error {
	h.Halt(h.BootID(), judge.Lost)
	_, err := h.Machine.Boot()
	return err
}

// Flags returns the flags with which an agent finds the host.
func (h *Host) Flags() []string {
	return []string{"--node-name=" + h.Name, "--dbus-address=" + h.Bus.Address(), "--host-root=" + h.Root, "--boot-id-file=" + h.BootIDFile()}
}
