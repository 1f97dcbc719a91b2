package hosttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
)

// Machine is a host with Flatcar. It has a root folder, and a bus with update_engine and logind.
type Machine struct {
	// Name is the name of its Node.
	Name string
	// Root represents the host's root file system.
	Root string
	// Bus is its system bus, with Engine and Logind on it.
	Bus    *Bus
	Engine *UpdateEngine
	Logind *Logind

	boots atomic.Int64
}

// NewMachine returns a host of a version for a test. It has not booted yet, and it ends with the
// test. Errors fail the test.
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

// Install changes the version of the host.
func (m *Machine) Install(version string) error {
	release := fmt.Sprintf("ID=flatcar\nVERSION_ID=%q\n", version)
	return os.WriteFile(filepath.Join(m.Root, "etc", "os-release"), []byte(release), 0o600)
}

// Boot begins another boot, with nothing staged and no shutdown under way. The bus keeps running.
func (m *Machine) Boot() error {
	m.Engine.SetStatus(Idle())
	return errors.Join(m.Freeze(), m.Logind.Start())
}

// Freeze begins another boot that keeps the state of all services, as if they had been frozen while
// the host was down.
func (m *Machine) Freeze() error {
	m.boots.Add(1)
	return m.SetBootID(m.BootID())
}

// Boots returns the number of boots of the host.
func (m *Machine) Boots() int { return int(m.boots.Load()) }

// BootID returns the boot ID of the last boot.
func (m *Machine) BootID() string { return fmt.Sprintf("%s-boot-%d", m.Name, m.Boots()) }

// Flags returns the flags with which an agent finds the host.
func (m *Machine) Flags() []string {
	return []string{"--node-name=" + m.Name, "--dbus-address=" + m.Bus.Address(), "--host-root=" + m.Root, "--boot-id-file=" + m.BootIDFile()}
}

// BootIDFile returns the path of the file that stands for /proc/sys/kernel/random/boot_id.
func (m *Machine) BootIDFile() string { return filepath.Join(m.Root, "boot_id") }

// SetBootID writes the boot ID as a new kernel would.
func (m *Machine) SetBootID(id string) error {
	return os.WriteFile(m.BootIDFile(), []byte(id+"\n"), 0o600)
}
