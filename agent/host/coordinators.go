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

// Coordinator is another program, or a scheduled shutdown, that may reboot the host without asking.
type Coordinator struct {
	// Name is the name of the program or the type of the scheduled shutdown, in at most 64 letters,
	// digits, dashes, dots and underscores. It is empty if it cannot be read.
	Name string
	// Unit is the active systemd unit of the program. It is empty for a scheduled shutdown, or if
	// only coordinator.conf shows the program.
	Unit string
	// Off is the command that keeps the program from rebooting the host. If it is empty, the Unit
	// has to be masked.
	Off string
	// At is the time of a scheduled shutdown, and zero for programs.
	At time.Time
	// By names who scheduled the shutdown and why, as far as logind knows. It is empty if that is
	// unknown.
	By string
}

// Coordinators finds the other programs that may reboot the host.
type Coordinators struct {
	// Connect opens the system bus. Required.
	Connect Connect
	// HostRoot is the path at which the file system of the host is mounted: /run, and /etc and /usr
	// for the configurations of programs. It is required, and "/" means this file system.
	HostRoot string
}

// rebooter is a program that reboots its host by itself. It is one row of the table below.
type rebooter struct {
	name string
	// units are the units that run the program. It is detected if one of them is active, or is
	// about to be.
	units []string
	// reboots reports whether the program is configured to reboot the host. It is nil if an active
	// unit always does.
	reboots func(ctx context.Context, on activeUnit) (bool, error)
	// off is the command that keeps the program from rebooting the host. If it is empty, the active
	// unit has to be masked.
	off string
}

// activeUnit is the host on which an active unit was found.
type activeUnit struct {
	conn *dbus.Conn
	// root is the path at which the file system of the host is mounted.
	root string
	unit string
}

// rebooters are the programs that are known to reboot a host by themselves, in the order in which
// they are reported.
var rebooters = []rebooter{
	// Flatcar and CoreOS: reboots once an update is staged.
	{name: "locksmithd", units: []string{"locksmithd.service"}},
	// Fedora CoreOS: finalizes what it has staged, which reboots the host. Its unit stays active if
	// its configuration turns it off.
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
	// SUSE. With method kured it creates /run/reboot-required, which engine sentinel detects.
	{
		name: "transactional-update", units: []string{"transactional-update.timer"}, reboots: transactionalUpdateReboots,
		off: `echo REBOOT_METHOD=kured >>/etc/transactional-update.conf`,
	},
	// SUSE with a writable root file system.
	{
		name: "os-update", units: []string{"os-update.timer"}, reboots: osUpdateReboots,
		off: `echo REBOOT_CMD=none >>/etc/os-update.conf`,
	},
}

// Other returns what else may reboot the host, or nil. A scheduled shutdown comes before the
// programs of the table, and these before the holder of coordinator.conf. An error names what could
// not be checked. It may come together with a coordinator that was found.
func (c Coordinators) Other(ctx context.Context) (*Coordinator, error) {
	found, err := c.onBus(ctx)
	if found != nil {
		return found, err
	}
	other, fileErr := readCoordinator(c.HostRoot)
	if fileErr != nil {
		fileErr = fmt.Errorf("reading /%s of the host: %w", coordinatorFile, fileErr)
	}
	if err != nil && fileErr != nil { // errors.Join adds a line break, which the message on the Node must not have.
		return other, fmt.Errorf("%w; %w", err, fileErr)
	}
	return other, cmp.Or(err, fileErr)
}

// onBus checks the bus on one connection. If a check fails, the others still run, and the first
// error is returned.
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
		unit, err := r.active(ctx, activeUnit{conn: conn, root: c.HostRoot})
		if first == nil {
			first = err // Later errors often have the same cause.
		}
		if unit != "" {
			return &Coordinator{Name: r.name, Unit: unit, Off: r.off}, first
		}
		if ctx.Err() != nil {
			break // All further calls would fail, too.
		}
	}
	return nil, first
}

// active returns the unit by which the program may reboot the host, or an empty string.
func (r rebooter) active(ctx context.Context, on activeUnit) (string, error) {
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

// The file in which an update coordinator reports that it reboots the host. Flatcar and CoreOS show
// its content at login. The file counts only while its writer holds an exclusive flock on it,
// because a coordinator that has ended may leave it behind: locksmithd never removes it.
// https://github.com/flatcar/locksmith: CHANGELOG.md (v0.5.0), pkg/coordinatorconf, pkg/filelock
const coordinatorFile = "run/update-engine/coordinator.conf"

// stateDisabled is the state of a coordinator that runs but does not reboot the host.
const stateDisabled = "disabled"

// maxCoordinatorBytes is far more than three assignments need, and maxCoordinatorName more than a
// name needs.
const maxCoordinatorBytes, maxCoordinatorName = 4 << 10, 64

// readCoordinator returns the coordinator that holds the file and may reboot the host, or nil.
func readCoordinator(hostRoot string) (*Coordinator, error) {
	root, err := os.OpenRoot(hostRoot)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	const tries = 3 // A coordinator replaces the file for each change of its state.
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

// lookAt reports whether the file is locked at this moment, and returns its content if so.
func lookAt(root *os.Root) (held bool, content string, err error) {
	file, err := openFile(root.OpenFile, coordinatorFile)
	if err != nil {
		return false, "", err
	}
	defer func() { _ = file.Close() }() // which releases the lock, too
	// The lock is shared, so that two readers do not take each other for a coordinator.
	free, err := tryLock(file)
	if err != nil {
		return false, "", err
	}
	if !free {
		raw, err := io.ReadAll(io.LimitReader(file, maxCoordinatorBytes))
		return true, string(raw), err
	}
	if !isCurrent(root, file) {
		return false, "", errReplaced // maybe by its holder
	}
	return false, "", nil
}

// tryLock tries to take a shared flock. It returns false if another process has an exclusive one.
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

// parseCoordinator reads the shell assignments of the file. It returns nil if the coordinator does
// not reboot the host.
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
