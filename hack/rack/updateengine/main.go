// This program plays update_engine on a machine of the rack, as a service on the machine's own
// system bus with Flatcar's interface. AttemptUpdate installs an update, and the machine runs it
// after its next boot.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

const (
	systemBus = "unix:path=/run/dbus/system_bus_socket"
	// staged is the file with the version on the other partition. It is on disk, and is removed
	// once it has booted.
	staged = "/var/lib/update-engine/staged"
	// release is the file that describes the running version.
	release = "/etc/os-release"
	// booted is a file that exists once this boot has switched partitions. An update that is staged
	// later waits for the next boot. A restart of the service and a soft reboot keep /run, so they
	// do not switch.
	booted = "/run/update-engine/booted"
	// size is the size of a download in bytes.
	size = 201337
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintf(os.Stderr, "update-engine: %v\n", err)
		os.Exit(1)
	}
}

func run() error {
	waiting, err := boot()
	if err != nil {
		return err
	}
	attempts := make(chan struct{}, 1)
	engine, err := hosttest.StartUpdateEngine(hosttest.Join(systemBus))
	if err != nil {
		return err
	}
	defer engine.Stop()
	if waiting != "" {
		if err := engine.Emit(hosttest.NeedReboot(waiting)); err != nil {
			return err
		}
	}
	engine.OnAttempt(func() {
		select {
		case attempts <- struct{}{}:
		default: // An update is in progress.
		}
	})
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM)
	for {
		select {
		case <-attempts:
			if err := install(engine); err != nil {
				return err
			}
		case <-end:
			return nil
		}
	}
}

// install broadcasts the signals of one update as the real service does, and leaves the next
// version staged.
func install(engine *hosttest.UpdateEngine) error {
	version, err := next()
	if err != nil {
		return err
	}
	status := []hosttest.Status{
		{Op: hosttest.OpCheckingForUpdate, Version: "0.0.0"},
		{Op: hosttest.OpUpdateAvailable, Version: version, Size: size},
	}
	for tenth := range 11 {
		status = append(status, hosttest.Status{Op: hosttest.OpDownloading, Progress: float64(tenth) / 10, Version: version, Size: size})
	}
	for _, s := range append(status, hosttest.Status{Op: hosttest.OpFinalizing, Version: version, Size: size}) {
		if err := engine.Emit(s); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(staged), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(staged, []byte(version), 0o600); err != nil {
		return fmt.Errorf("staging %s: %w", version, err)
	}
	return engine.Emit(hosttest.NeedReboot(version))
}

// boot switches to the version that was staged before this boot, once. It returns the version that
// is staged for the next boot, or an empty text.
func boot() (waiting string, err error) {
	_, err = os.Stat(booted)
	if err == nil {
		version, err := os.ReadFile(staged)
		if err != nil && !os.IsNotExist(err) {
			return "", fmt.Errorf("reading what is staged: %w", err)
		}
		return string(version), nil
	}
	if !os.IsNotExist(err) {
		return "", fmt.Errorf("looking for a boot: %w", err)
	}
	if err := switchPartition(); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(booted), 0o755); err != nil {
		return "", fmt.Errorf("recording the boot: %w", err)
	}
	if err := os.WriteFile(booted, nil, 0o600); err != nil {
		return "", fmt.Errorf("recording the boot: %w", err)
	}
	return "", nil
}

// switchPartition makes the staged version the running one.
func switchPartition() error {
	version, err := os.ReadFile(staged)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading what is staged: %w", err)
	}
	draft := release + ".draft"
	if err := os.WriteFile(draft, fmt.Appendf(nil, osRelease, version, version), 0o644); err != nil {
		return fmt.Errorf("booting %s: %w", version, err)
	}
	if err := os.Rename(draft, release); err != nil {
		return fmt.Errorf("booting %s: %w", version, err)
	}
	return os.Remove(staged)
}

// osRelease returns the os-release of the running version, which contains the version twice.
const osRelease = `ID=flatcar
VERSION_ID=%s
PRETTY_NAME="Rack %s"
`

// next returns the version after the running one.
func next() (string, error) {
	text, err := os.ReadFile(release)
	if err != nil {
		return "", fmt.Errorf("reading which version runs: %w", err)
	}
	var major int
	var id string
	if _, err := fmt.Sscanf(string(text), "ID=%s\nVERSION_ID=%d", &id, &major); err != nil {
		return "", fmt.Errorf("reading which version runs from %s: %w", release, err)
	}
	return fmt.Sprintf("%d.0.0", major+1), nil
}
