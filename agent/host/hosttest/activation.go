package hosttest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// activation is a service that the bus starts when somebody calls it, as systemd would. The service lives in the test
// process, so what the daemon runs writes a line into a pipe, which the test process reads.
type activation struct {
	// script is what the daemon runs.
	script string
	// starts is the pipe.
	starts *os.File
}

// activatable makes name a service that the bus starts on demand. start is called for each such demand, one at a time; a
// demand is met once the name is taken.
func (b *Bus) activatable(name string, start func() error) (*activation, error) {
	folder := b.services()
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("making %s activatable: %w", name, err)
	}
	script, pipe := filepath.Join(folder, name+".sh"), filepath.Join(folder, name+".pipe")
	unit := fmt.Sprintf("[D-BUS Service]\nName=%s\nExec=/bin/sh \"%s\"\n", name, script)
	if err := os.WriteFile(filepath.Join(folder, name+".service"), []byte(unit), 0o600); err != nil {
		return nil, fmt.Errorf("making %s activatable: %w", name, err)
	}
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		return nil, fmt.Errorf("making the pipe of %s: %w", name, err)
	}
	// Open for writing too: so it neither blocks nor ends when nobody writes.
	starts, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("opening the pipe of %s: %w", name, err)
	}
	a := &activation{script: script, starts: starts}
	b.mu.Lock()
	b.activations = append(b.activations, a)
	b.mu.Unlock()
	go a.answer(start)
	return a, a.works(true)
}

// MakeActivatable installs a service that the bus could start on demand, and that fails to.
func (b *Bus) MakeActivatable(name string) error {
	a, err := b.activatable(name, func() error { return nil })
	if err != nil {
		return err
	}
	return errors.Join(a.works(false), b.reload())
}

// reload makes the daemon list what was installed; it finds it by itself once somebody calls it.
func (b *Bus) reload() error {
	conn, err := b.Connect()
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.BusObject().Call("org.freedesktop.DBus.ReloadConfig", 0).Err; err != nil {
		return fmt.Errorf("reloading the bus: %w", err)
	}
	return nil
}

// works chooses what the daemon runs from now on: what writes into the pipe, or something that fails.
func (a *activation) works(works bool) error {
	script := "exit 1\n"
	if works {
		script = fmt.Sprintf("echo start >'%s'\n", a.starts.Name())
	}
	if err := os.WriteFile(a.script, []byte(script), 0o600); err != nil {
		return fmt.Errorf("writing %s: %w", a.script, err)
	}
	return nil
}

// answer starts the service at each line, until the pipe is closed. Where that fails the caller's call fails with it: the
// daemon waits for the name for a while.
func (a *activation) answer(start func() error) {
	for lines := bufio.NewScanner(a.starts); lines.Scan(); {
		_ = start()
	}
}
