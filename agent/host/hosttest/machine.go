package hosttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Machine is a host with Flatcar: a root folder, and a bus with update_engine and logind.
type Machine struct {
	// Root represents the host's root file system.
	Root string
	// Bus is its system bus, with Engine and Logind on it.
	Bus    *Bus
	Engine *UpdateEngine
	Logind *Logind
}

// NewMachine is a host for a test, of a version. Nothing is staged. What goes wrong fails the test, with which the host ends.
func NewMachine(t TB, version string) *Machine {
	t.Helper()
	m := &Machine{Root: t.TempDir(), Bus: StartFor(t)}
	err := errors.Join(os.Mkdir(filepath.Join(m.Root, "etc"), 0o755), m.Install(version))
	if err == nil {
		m.Engine, err = StartUpdateEngine(m.Bus)
	}
	if err == nil {
		m.Logind, err = StartLogind(m.Bus)
	}
	if err != nil {
		t.Fatalf("starting a host: %v", err)
	}
	return m
}

// Install makes the host one of a version.
func (m *Machine) Install(version string) error {
	release := fmt.Sprintf("ID=flatcar\nVERSION_ID=%q\n", version)
	return os.WriteFile(filepath.Join(m.Root, "etc", "os-release"), []byte(release), 0o600)
}

// BootIDFile represents /proc/sys/kernel/random/boot_id.
func (m *Machine) BootIDFile() string { return filepath.Join(m.Root, "boot_id") }

// SetBootID is a kernel that has come up.
func (m *Machine) SetBootID(id string) error {
	return os.WriteFile(m.BootIDFile(), []byte(id+"\n"), 0o600)
}
