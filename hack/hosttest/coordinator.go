package hosttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Coordinator is an update coordinator such as locksmithd, as far as
// /run/update-engine/coordinator.conf shows it.
type Coordinator struct {
	path string
	held *os.File
}

// Coordinate starts a coordinator on the host whose file system is at root. It fails if another one
// runs there.
func Coordinate(root, content string) (*Coordinator, error) {
	c := &Coordinator{path: filepath.Join(root, "run", "update-engine", "coordinator.conf")}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o750); err != nil {
		return nil, fmt.Errorf("starting a coordinator: %w", err)
	}
	file, err := locked(c.path)
	if err != nil {
		return nil, fmt.Errorf("starting a coordinator: %w", err)
	}
	c.held = file
	return c, c.Write(content)
}

// Write changes the content of the file as locksmithd does: a new file, which is already locked,
// replaces the old one.
func (c *Coordinator) Write(content string) error {
	draft := c.path + ".draft"
	file, err := locked(draft)
	if err != nil {
		return fmt.Errorf("writing for a coordinator: %w", err)
	}
	_, err = file.WriteString(content)
	if err := errors.Join(err, os.Rename(draft, c.path)); err != nil {
		return fmt.Errorf("writing for a coordinator: %w", err)
	}
	c.End()
	c.held = file
	return nil
}

// End ends the process of the coordinator: the lock is released, and the file stays.
func (c *Coordinator) End() { _ = c.held.Close() }

func locked(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(os.NewSyscallError("flock", err), file.Close())
	}
	return file, nil
}
