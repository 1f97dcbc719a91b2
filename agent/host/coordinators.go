package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/godbus/dbus/v5"
)

// Coordinator is another program, or a schedule, that may reboot the host without asking.
type Coordinator struct {
	// Name, or the type of a scheduled shutdown, is at most 64 letters, digits, dashes, dots and underscores. Empty: its name cannot be
	// read.
	Name string
	// Unit is the systemd unit it was found by. Empty: it was found by coordinator.conf, or is a scheduled shutdown.
	Unit string
	// Off is the command that keeps it from rebooting the host. Empty: masking the Unit is.
	Off string
	// At is when a scheduled shutdown begins. Zero: it is not a scheduled shutdown.
	At time.Time
	// By is who scheduled the shutdown, and why, as far as logind knows. Empty: unknown.
	By string
}

// Coordinators finds out who else may reboot the host.
type Coordinators struct {
	// Connect opens the system bus. Required.
	Connect Connect
	// HostRoot is where the host's file system is mounted: /run, and /etc and /usr where a program's configuration decides.
	// Required; "/" is this one.
	HostRoot string
}

// rebooter is a program that reboots its host by itself: a row of the table below.
type rebooter struct {
	name string
	// units are those that make it act. One that is active, or about to be, is how it is detected.
	units []string
	// reboots reports whether it reboots the host, where the unit alone does not decide that. Nil: it does.
	reboots func(ctx context.Context, on looked) (bool, error)
	// off is the command that keeps it from rebooting the host. Empty: masking the active unit is.
	off string
}

// looked is the host on which an active unit was found.
type looked struct {
	conn *dbus.Conn
	// root is where the host's file system is mounted.
	root string
	unit string
}

// rebooters are the programs known to reboot a host by themselves, in the order in which they are reported.
var rebooters = []rebooter{
	// Flatcar and CoreOS: reboots once an update is staged.
	{name: "locksmithd", units: []string{"locksmithd.service"}},
	// Fedora CoreOS: finalizes what it has staged, which reboots. It stays active if its configuration turns it off.
	{name: Zincati, units: []string{zincatiUnit}, reboots: zincatiReboots, off: zincatiAdvice},
	{
		name: "rpm-ostree", units: []string{"rpm-ostreed-automatic.timer"}, reboots: rpmOSTreeReboots,
		off: `sed -i 's/^AutomaticUpdatePolicy *=.*/AutomaticUpdatePolicy=stage/' /etc/rpm-ostreed.conf`,
	},
	{
		name: "unattended-upgrades", units: []string{"apt-daily-upgrade.timer"}, reboots: aptReboots,
		off: `echo 'Unattended-Upgrade::Automatic-Reboot "false";' >/etc/apt/apt.conf.d/99-no-reboot`,
	},
	{name: "rebootmgr", units: []string{"rebootmgr.service"}},
	{name: "bootc", units: []string{"bootc-fetch-apply-updates.timer"}},
	{name: "systemd-sysupdate", units: []string{"systemd-sysupdate-reboot.timer"}},
	{
		name: "dnf-automatic", units: []string{"dnf-automatic.timer", "dnf-automatic-install.timer", "dnf5-automatic.timer"},
		reboots: dnfReboots, off: `sed -i 's/^reboot *=.*/reboot = never/' /etc/dnf/automatic.conf`,
	},
	// SUSE. With method kured it makes /run/reboot-required, which engine sentinel detects.
	{
		name: "transactional-update", units: []string{"transactional-update.timer"}, reboots: transactionalUpdateReboots,
		off: `echo REBOOT_METHOD=kured >>/etc/transactional-update.conf`,
	},
	// SUSE with a root file system that can be written.
	{
		name: "os-update", units: []string{"os-update.timer"}, reboots: osUpdateReboots,
		off: `echo REBOOT_CMD=none >>/etc/os-update.conf`,
	},
}

// Other is what else may reboot the host: a scheduled shutdown before the programs of the table, and these before
// the holder of coordinator.conf. Nil: nothing. An error states what could not be found out. A coordinator that
// is found all the same is returned with it.
func (c Coordinators) Other(ctx context.Context) (*Coordinator, error) {
	found, err := c.onBus(ctx)
	if found != nil {
		return found, err
	}
	other, fileErr := readCoordinator(c.HostRoot)
	if fileErr != nil {
		fileErr = fmt.Errorf("reading /%s of the host: %w", coordinatorFile, fileErr)
	}
	if err != nil && fileErr != nil { // Not joined by a line break: it is part of a message on the Node.
		return other, fmt.Errorf("%w; %w", err, fileErr)
	}
	return other, cmp.Or(err, fileErr)
}

// onBus looks on one connection. What cannot be asked keeps nothing else from being found; the first such thing is the error.
func (c Coordinators) onBus(ctx context.Context) (*Coordinator, error) {
	conn, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	found, first := scheduled(ctx, conn, c.HostRoot)
	if found != nil {
		return found, nil
	}
	if first != nil {
		first = fmt.Errorf("asking logind for %s: %w", scheduledShutdown, first)
	}
	for _, r := range rebooters {
		unit, err := r.active(ctx, looked{conn: conn, root: c.HostRoot})
		if first == nil {
			first = err // The others often have the same cause.
		}
		if unit != "" {
			return &Coordinator{Name: r.name, Unit: unit, Off: r.off}, first
		}
		if ctx.Err() != nil {
			break // Every further question would end the same way.
		}
	}
	return nil, first
}

// active is the unit by which the program may reboot the host. Empty: none.
func (r rebooter) active(ctx context.Context, on looked) (string, error) {
	for _, unit := range r.units {
		active, err := unitIsActive(ctx, on, unit)
		if err != nil {
			return "", fmt.Errorf("asking systemd whether %s is active: %w", unit, answered("systemd", err))
		}
		if !active {
			continue
		}
		if r.reboots == nil {
			return unit, nil
		}
		on.unit = unit
		reboots, err := r.reboots(ctx, on)
		if err != nil {
			return "", fmt.Errorf("%s is active; whether %s reboots the host: %w", unit, r.name, answered("systemd", err))
		}
		if reboots {
			return unit, nil
		}
	}
	return "", nil
}

// The file in which an update coordinator reports that it reboots the host. That holds while it has an exclusive flock on the file.
// Flatcar and CoreOS show it at a login. What a coordinator that has ended leaves behind is unlocked, and means nothing: locksmithd
// never removes it.
// https://github.com/flatcar/locksmith: CHANGELOG.md (v0.5.0), pkg/coordinatorconf, pkg/filelock
const coordinatorFile = "run/update-engine/coordinator.conf"

// stateDisabled is a coordinator that runs and reboots nothing.
const stateDisabled = "disabled"

// maxCoordinatorBytes is far more than three assignments take, maxCoordinatorName than a name.
const maxCoordinatorBytes, maxCoordinatorName = 4 << 10, 64

// readCoordinator reads who holds the file, and may reboot. Nil: it is not held.
func readCoordinator(hostRoot string) (*Coordinator, error) {
	root, err := os.OpenRoot(hostRoot)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	const tries = 3 // Each change of a coordinator's state is another file under the same name.
	for range tries {
		held, content, err := lookAt(root)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case errors.Is(err, errReplaced):
			continue
		case err != nil || !held:
			return nil, err
		}
		return parseCoordinator(content), nil
	}
	return nil, errReplaced
}

var errReplaced = errors.New("it was replaced while it was read")

// lookAt reports whether the file is held as it is at this moment, and what it states then.
func lookAt(root *os.Root) (held bool, content string, err error) {
	file, err := openFile(root.OpenFile, coordinatorFile)
	if err != nil {
		return false, "", err
	}
	defer func() { _ = file.Close() }() // which gives up the lock as well
	// Shared, so that two who look are not in each other's way.
	free, err := tryLock(file)
	if err != nil {
		return false, "", err
	}
	if !free {
		raw, err := io.ReadAll(io.LimitReader(file, maxCoordinatorBytes))
		return true, string(raw), err
	}
	if !isCurrent(root, file) {
		return false, "", errReplaced // by the one who held it, maybe
	}
	return false, "", nil
}

// tryLock takes a shared flock without waiting for it. False: another process has an exclusive one.
func tryLock(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	if err != nil {
		return false, os.NewSyscallError("flock", err)
	}
	return true, nil
}

// isCurrent reports whether an open file is still the coordinator's file.
func isCurrent(root *os.Root, file *os.File) bool {
	now, err := root.Stat(coordinatorFile)
	if err != nil {
		return false
	}
	opened, err := file.Stat()
	return err == nil && os.SameFile(now, opened)
}

// parseCoordinator reads the shell assignments of the one who holds the file. Nil: it reboots nothing.
func parseCoordinator(content string) *Coordinator {
	values := parseAssignments(content)
	name := values["NAME"]
	switch {
	case !isCoordinatorName(name):
		return &Coordinator{}
	case values["STATE"] == stateDisabled:
		return nil
	}
	return &Coordinator{Name: name}
}

func isCoordinatorName(name string) bool {
	return name != "" && len(name) <= maxCoordinatorName && isMadeOf(name, "-._")
}
