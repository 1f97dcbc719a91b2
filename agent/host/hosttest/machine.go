package hosttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
)

// Machine is a host with Flatcar: a root folder, and a bus with update_engine and logind.
type Machine struct {
	// Name is that of its Node.
	Name string
	// Root represents the host's root file system.
	Root string
	// Bus is its system bus, with Engine and Logind on it.
	Bus    *Bus
	Engine *UpdateEngine
	Logind *Logind

	boots atomic.Int64
}

// NewMachine is a host for a test, of a version, that has not booted. What goes wrong fails the test, with which the host ends.
func NewMachine(t TB, name, version string) *Machine {
	t.Helper()
	m := &Machine{Name: name, Root: t.TempDir(), Bus: StartFor(t)}
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

// Boot begins another boot, with nothing staged and a logind that has no shutdown under way. The bus stays.
func (m *Machine) Boot() error {
	m.Engine.SetStatus(Idle())
	return errors.Join(m.Freeze(), m.Logind.Start())
}

// Freeze begins another boot that ends nothing on the host, as if that had been frozen while it was down.
func (m *Machine) Freeze() error {
	m.boots.Add(1)
	return m.SetBootID(m.BootID())
}

// Boots is how often the host has booted.
func (m *Machine) Boots() int { return int(m.boots.Load()) }

// BootID is that of the last boot.
func (m *Machine) BootID() string { return fmt.Sprintf("%s-boot-%d", m.Name, m.Boots()) }

// Flags are those by which an agent finds the host.
func (m *Machine) Flags() []string {
	return []string{"--node-name=" + m.Name, "--dbus-address=" + m.Bus.Address(), "--host-root=" + m.Root, "--boot-id-file=" + m.BootIDFile()}
}

// BootIDFile represents /proc/sys/kernel/random/boot_id.
func (m *Machine) BootIDFile() string { return filepath.Join(m.Root, "boot_id") }

// SetBootID is a kernel that has come up.
func (m *Machine) SetBootID(id string) error {
	return os.WriteFile(m.BootIDFile(), []byte(id+"\n"), 0o600)
}
