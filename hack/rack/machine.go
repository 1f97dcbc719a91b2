package rack

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/reboot-operator/reboot-operator/hack/machine"
)

//go:embed files
var files embed.FS

// Machine is one machine of the rack. Its methods may be called from any goroutine.
type Machine struct {
	// Name is the name of the host and of its Node.
	Name string
	// Suite is the Debian release: bookworm has systemd 252, trixie 257.
	Suite string
	// Address is the IPv4 address.
	Address string

	number  int
	rack    *Rack
	network *network
	cgroup  cgroup
	// done is closed when the machine has gone down for good; err then holds the cause.
	done chan struct{}
	err  error
	// plug keeps a machine that went down from booting.
	plug machine.Gate
	// supervisor is the process of systemd-nspawn, or 0 while the machine is off.
	supervisor atomic.Int64
	boots      atomic.Int64
}

// Folder is the folder of the machine's files on this machine: changes is its disk, and console.log
// its console.
func (m *Machine) Folder() string { return filepath.Join(m.rack.folder, m.Name) }

// Disk returns the path on this machine of a file that the machine has written. Unchanged files are
// not there.
func (m *Machine) Disk(path string) string { return filepath.Join(m.Folder(), "changes", path) }

// install writes the files that turn a Debian into a node.
func (m *Machine) install(kubeconfig []byte) error {
	for _, folder := range []string{"root", "changes", "work", "containerd", "kubelet"} {
		if err := os.MkdirAll(filepath.Join(m.Folder(), folder), 0o755); err != nil {
			return fmt.Errorf("installing %s: %w", m.Name, err)
		}
	}
	for path, content := range map[string][]byte{
		"etc/hostname":               []byte(m.Name + "\n"),
		"etc/hosts":                  []byte("127.0.0.1 localhost " + m.Name + "\n"),
		"etc/resolv.conf":            nil,
		"etc/os-release":             []byte("ID=flatcar\nVERSION_ID=4000.0.0\nPRETTY_NAME=\"Rack 4000.0.0\"\n"),
		"etc/kubernetes/kubeconfig":  kubeconfig,
		"etc/kubernetes/node.env":    fmt.Appendf(nil, "NODE=%s\nIP=%s\n", m.Name, m.Address),
		"var/log/journal/.persisted": nil, // journald keeps its journal where it finds the folder
	} {
		if err := m.write(path, content, 0o644); err != nil {
			return err
		}
	}
	return errors.Join(m.installFiles(), m.keepMounts())
}

// keepMounts keeps the mounts from outside through a soft reboot, which unmounts everything that no
// unit mounts again.
func (m *Machine) keepMounts() error {
	var errs []error
	for _, unit := range []string{"opt-rack", "var-lib-containerd", "var-lib-kubelet"} {
		errs = append(errs, m.write("etc/systemd/system/"+unit+".mount.d/keep.conf", []byte("[Unit]\nDefaultDependencies=no\n"), 0o644))
	}
	return errors.Join(errs...)
}

// installFiles writes the files that all machines have.
func (m *Machine) installFiles() error {
	for name, path := range map[string]string{
		"kubelet.yaml":            "etc/kubernetes/kubelet.yaml",
		"prepare.sh":              "etc/kubernetes/prepare",
		"containerd.toml":         "etc/containerd/config.toml",
		"pods.conflist":           "etc/cni/net.d/10-pods.conflist",
		"com.coreos.update1.conf": "etc/dbus-1/system.d/com.coreos.update1.conf",
		"kubelet.service":         "etc/systemd/system/kubelet.service",
		"images.service":          "etc/systemd/system/images.service",
		"update-engine.service":   "etc/systemd/system/update-engine.service",
	} {
		content, err := files.ReadFile("files/" + name)
		if err != nil {
			return fmt.Errorf("installing %s: %w", m.Name, err)
		}
		mode := os.FileMode(0o644)
		if bytes.HasPrefix(content, []byte("#!")) {
			mode = 0o755
		}
		if err := m.write(path, []byte(m.fill(string(content))), mode); err != nil {
			return err
		}
		if strings.HasSuffix(name, ".service") {
			if err := m.enable(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// fill sets what differs between machines and between versions of cgroups. On v2 systemd divides
// the groups. On v1 kubelet and containerd do so next to the systemd of a container.
func (m *Machine) fill(content string) string {
	driver := "cgroupfs"
	if m.cgroup.unified {
		driver = "systemd"
	}
	return strings.NewReplacer(
		"PODS", podsOf(m.number), "CGROUP_DRIVER", driver, "CGROUP_BY_SYSTEMD", strconv.FormatBool(m.cgroup.unified),
	).Replace(content)
}

func (m *Machine) enable(unit string) error {
	wants := m.Disk("etc/systemd/system/multi-user.target.wants")
	if err := os.MkdirAll(wants, 0o755); err != nil {
		return fmt.Errorf("enabling %s on %s: %w", unit, m.Name, err)
	}
	if err := os.Symlink("/etc/systemd/system/"+unit, filepath.Join(wants, unit)); err != nil {
		return fmt.Errorf("enabling %s on %s: %w", unit, m.Name, err)
	}
	return nil
}

func (m *Machine) write(path string, content []byte, mode os.FileMode) error {
	path = m.Disk(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("installing %s: %w", m.Name, err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		return fmt.Errorf("installing %s: %w", m.Name, err)
	}
	return nil
}

// wantsReboot is the exit status of systemd-nspawn if the machine asked for a reboot.
const wantsReboot = 133

// supply switches the machine on, and on again after each reboot. It stays on one thread, because
// the kernel ends a machine together with the thread that started it.
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

// boot runs one boot of the machine, from on to off.
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
	// SIGTERM makes the machine shut down in order. SIGKILL would leave its processes behind.
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

// Unplug makes the machine's next reboot its last: it goes down and stays down until PlugIn.
func (m *Machine) Unplug() { m.plug.Hold() }

// PlugIn reverts Unplug. A machine that is down is switched on.
func (m *Machine) PlugIn() { m.plug.Release() }

// Boots returns how often the machine was switched on.
func (m *Machine) Boots() int { return int(m.boots.Load()) }

// IsOn reports whether the machine is on.
func (m *Machine) IsOn() bool { return m.supervisor.Load() != 0 }

// Err returns the reason that the machine has gone down for good, unless that was a reboot or
// intended.
func (m *Machine) Err() error {
	select {
	case <-m.done:
		return m.err
	default:
		return nil
	}
}
