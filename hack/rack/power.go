package rack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// wantsReboot is the exit status of systemd-nspawn when the machine has asked for a reboot.
const wantsReboot = 133

// supply is the machine's power supply: it switches it on, and on again whenever it has asked for a reboot. It stays on one
// thread, because the kernel ends a machine when the thread that started it does.
func (m *Machine) supply() {
	runtime.LockOSThread()
	defer close(m.done)
	for {
		code, err := m.boot()
		if err == nil && code == wantsReboot && m.plug.Pass(m.rack.power) {
			continue
		}
		if err == nil && code != 0 && code != wantsReboot {
			err = fmt.Errorf("%s ended with exit status %d: %s", m.Name, code, filepath.Join(m.Folder(), "console.log"))
		}
		m.err = err
		return
	}
}

// boot is one boot of the machine, from on to off.
func (m *Machine) boot() (exitCode int, err error) {
	script, err := files.ReadFile("files/boot.sh")
	if err != nil {
		return 0, err
	}
	groups, err := m.cgroup.forBoot(m.Boots())
	if err != nil {
		return 0, err
	}
	console, err := os.OpenFile(filepath.Join(m.Folder(), "console.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("opening the console of %s: %w", m.Name, err)
	}
	defer console.Close()
	command := exec.Command("unshare", "--mount", "--propagation=private", "sh", "-c", string(script))
	command.Env = append(os.Environ(), "SYSTEMD_SECCOMP=0", // pods' own filters are runc's
		"CGROUPS="+strings.Join(groups, " "), "BASE="+filepath.Join(m.rack.prepared, m.Suite), "FOLDER="+m.Folder(), "NAME="+m.Name,
		"NETWORK="+m.network.path(), "RACK="+m.rack.gear())
	command.Stdout, command.Stderr = console, console
	// SIGTERM makes it halt the machine in order. SIGKILL would leave the machine's processes behind.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	if err := command.Start(); err != nil {
		return 0, fmt.Errorf("switching %s on: %w", m.Name, err)
	}
	m.boots.Add(1)
	m.supervisor.Store(int64(command.Process.Pid))
	err = command.Wait()
	m.supervisor.Store(0)
	if failure := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failure) {
		return 0, fmt.Errorf("waiting for %s: %w", m.Name, err)
	}
	return command.ProcessState.ExitCode(), nil
}

// Unplug lets the machine's next reboot be its last: it goes down and does not come up until it is plugged in again.
func (m *Machine) Unplug() { m.plug.Hold() }

// PlugIn takes Unplug back: where the machine is down it is switched on.
func (m *Machine) PlugIn() { m.plug.Release() }

// Boots is how often it has been switched on.
func (m *Machine) Boots() int { return int(m.boots.Load()) }

// IsOn reports whether it is on.
func (m *Machine) IsOn() bool { return m.supervisor.Load() != 0 }

// Err is why it has gone down for good, if that was not a reboot or wanted.
func (m *Machine) Err() error {
	select {
	case <-m.done:
		return m.err
	default:
		return nil
	}
}
