package host

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// The file in which an update coordinator reports, as long as it holds an exclusive flock on it, that it is the one who reboots
// the host. Flatcar and CoreOS show it at a login. What a coordinator that has ended leaves behind is unlocked, and means
// nothing: locksmithd never removes it.
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
	// Opening a pipe would wait for its other end.
	file, err := root.OpenFile(coordinatorFile, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return false, "", err
	}
	defer func() { _ = file.Close() }() // which gives up the lock as well
	if err := isFile(file); err != nil {
		return false, "", err
	}
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

func isFile(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is no regular file; remove it")
	}
	return nil
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
	return name != "" && len(name) <= maxCoordinatorName &&
		!strings.ContainsFunc(name, func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("-._", r) })
}
