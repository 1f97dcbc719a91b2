package rack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/prometheus/procfs"
)

var errOff = errors.New("the machine is off")

// leader returns the process that is PID 1 in the machine.
func (m *Machine) leader() (int, error) {
	supervisor := m.supervisor.Load()
	if supervisor == 0 {
		return 0, errOff
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", supervisor, supervisor))
	if err != nil {
		return 0, fmt.Errorf("looking for the init process of %s: %w", m.Name, err)
	}
	for field := range strings.FieldsSeq(string(children)) {
		if id, err := strconv.Atoi(field); err == nil && isInit(id) {
			return id, nil
		}
	}
	return 0, errOff
}

// isInit reports whether a process is PID 1 in another namespace. The last ID in the list is
// the one inside.
func isInit(id int) bool {
	p, err := procfs.NewProc(id)
	if err != nil {
		return false
	}
	status, err := p.NewStatus()
	return err == nil && len(status.NSpids) > 1 && status.NSpids[len(status.NSpids)-1] == 1
}

// Path returns the path on this machine of a file in the running machine.
func (m *Machine) Path(path string) (string, error) {
	leader, err := m.leader()
	if err != nil {
		return "", err
	}
	return filepath.Join("/proc", strconv.Itoa(leader), "root", path), nil
}

// BootID returns the boot ID that the machine shows to its own programs.
func (m *Machine) BootID() (string, error) {
	path, err := m.Path("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading the boot ID of %s: %w", m.Name, err)
	}
	return string(bytes.TrimSpace(text)), nil
}

// answerWithin limits the time of one program in a machine. A systemctl whose systemd is replaced
// by a soft reboot may never get an answer.
const answerWithin = 30 * time.Second

// Run runs a program in the machine, as after a login, and returns its output.
func (m *Machine) Run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	leader, err := m.leader()
	if err != nil {
		return "", err
	}
	enter := []string{"--target", strconv.Itoa(leader), "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd"}
	cmd := exec.CommandContext(ctx, "nsenter", append(append(enter, "--"), args...)...)
	// The program outlives nsenter and keeps its output open.
	cmd.WaitDelay = time.Second
	output, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running %s on %s: %w: %s", strings.Join(args, " "), m.Name, err, bytes.TrimSpace(output))
	}
	return string(output), nil
}

// InstallUpdate makes the machine's update_engine find an update, install it and ask for a reboot.
func (m *Machine) InstallUpdate() error {
	socket, err := m.Path("/run/dbus/system_bus_socket")
	if err != nil {
		return err
	}
	bus, err := dbus.Connect("unix:path=" + socket)
	if err != nil {
		return fmt.Errorf("connecting to the system bus of %s: %w", m.Name, err)
	}
	defer bus.Close()
	engine := bus.Object("com.coreos.update1", "/com/coreos/update1")
	if err := engine.Call("com.coreos.update1.Manager.AttemptUpdate", 0).Err; err != nil {
		return fmt.Errorf("updating %s: %w", m.Name, err)
	}
	return nil
}
