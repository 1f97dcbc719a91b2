package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
)

// This file has what decides, beside an active unit, whether a program of the table reboots the host. Whatever cannot be read
// is an error, never a no.

const systemdServiceInterface = "org.freedesktop.systemd1.Service"

// zincatiOff is in the unit's status once Zincati has read updates.enabled=false. It stays active then, and does nothing.
// https://github.com/coreos/zincati/blob/main/src/update_agent/actor.rs
const zincatiOff = "auto-updates logic disabled by configuration"

func zincatiReboots(ctx context.Context, on looked) (bool, error) {
	status, err := unitProperty(ctx, on.conn, on.unit, systemdServiceInterface, "StatusText")
	return !strings.Contains(status, zincatiOff), err
}

// rpmOSTreeReboots reads the file that the daemon reads: asking the daemon would start it, and it is asked often.
func rpmOSTreeReboots(_ context.Context, on looked) (bool, error) {
	content, err := readConfiguration(on.root, "/etc/rpm-ostreed.conf")
	if err != nil {
		return false, err
	}
	switch policy := strings.ToLower(iniValue(content, "Daemon", "AutomaticUpdatePolicy")); policy {
	case "", "none", "off", "check", "stage", "ex-stage":
		return false, nil
	case "apply":
		return true, nil
	default:
		return false, fmt.Errorf("AutomaticUpdatePolicy is %.32q in /etc/rpm-ostreed.conf", policy)
	}
}

// dnfReboots reads the files of dnf-automatic of dnf 4 and 5; the later of them wins.
func dnfReboots(_ context.Context, on looked) (bool, error) {
	reboot := ""
	for _, name := range []string{
		"/usr/share/dnf5/dnf5-plugins/automatic.conf", "/etc/dnf/dnf5-plugins/automatic.conf", "/etc/dnf/automatic.conf",
	} {
		content, err := readConfiguration(on.root, name)
		if err != nil {
			return false, err
		}
		if value := iniValue(content, "commands", "reboot"); value != "" {
			reboot = value
		}
	}
	return reboot != "" && reboot != "never", nil
}

// transactionalUpdateReboots: without a method it chooses one that reboots.
func transactionalUpdateReboots(_ context.Context, on looked) (bool, error) {
	const vendor, administrator = "/usr/etc/transactional-update.conf", "/etc/transactional-update.conf"
	snippets, err := configurationsIn(on.root, vendor+".d")
	if err != nil {
		return false, err
	}
	method, err := lastAssignment(on.root, "REBOOT_METHOD", slices.Concat([]string{vendor}, snippets, []string{administrator})...)
	return method != "kured" && method != "none", err
}

// osUpdateReboots: without a command it chooses one that reboots.
// https://github.com/openSUSE/os-update/blob/main/src/os-update.in
func osUpdateReboots(_ context.Context, on looked) (bool, error) {
	command, err := lastAssignment(on.root, "REBOOT_CMD", "/usr/share/os-update/os-update.conf", "/usr/etc/os-update.conf", "/etc/os-update.conf")
	return command != "no" && command != "none", err
}

// lastAssignment is the value that the last of a host's files with shell assignments gives to a variable. Empty: none does.
func lastAssignment(root, variable string, names ...string) (string, error) {
	last := ""
	for _, name := range names {
		content, err := readConfiguration(root, name)
		if err != nil {
			return "", err
		}
		if value, set := parseAssignments(content)[variable]; set {
			last = value
		}
	}
	return last, nil
}

// readConfiguration reads a file of the host; one that does not exist is empty, and so is a link to /dev/null, by which a file is
// turned off that a package brings.
func readConfiguration(root, name string) (string, error) {
	file, err := securejoin.SecureJoin(root, name)
	if err == nil && file == filepath.Join(root, os.DevNull) {
		return "", nil
	}
	content := ""
	if err == nil {
		content, err = readSome(file, maxFileBytes)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", isMissing(root, file)
	case err != nil:
		return "", fmt.Errorf("reading %s of the host: %w", name, withoutPath(err))
	case len(content) == maxFileBytes:
		return "", fmt.Errorf("reading %s of the host: it has more than %d bytes", name, maxFileBytes)
	}
	return content, nil
}

// isMissing is nil where the host does not have what was not found. It may have it where the first folder on the way, such as /etc
// or that which a link leads to, is not mounted into the agent's pod.
func isMissing(root, file string) error {
	below, err := filepath.Rel(root, file)
	if err != nil {
		return err
	}
	top, _, _ := strings.Cut(below, "/")
	if _, err := os.Stat(filepath.Join(root, top)); err != nil {
		return fmt.Errorf("reading /%s of the host: %w", top, withoutPath(err))
	}
	return nil
}

// configurationsIn are the files in a folder of the host, in their order; none where there is no such folder.
func configurationsIn(root, folder string) ([]string, error) {
	target, err := securejoin.SecureJoin(root, folder)
	var entries []os.DirEntry
	if err == nil {
		entries, err = os.ReadDir(target)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, isMissing(root, target)
	case err != nil:
		return nil, fmt.Errorf("reading %s of the host: %w", folder, withoutPath(err))
	}
	var names []string
	for _, entry := range entries {
		if !entry.IsDir() {
			names = append(names, path.Join(folder, entry.Name()))
		}
	}
	return names, nil
}

// withoutPath is what went wrong with a file: the path is this container's, not the host's.
func withoutPath(err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return failed.Err
	}
	return err
}

// iniValue is the last value of a key in a section of an INI file, without blanks around it. Empty: it is not set.
func iniValue(content, section, key string) string {
	value, in := "", ""
	for line := range strings.Lines(content) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			in, _, _ = strings.Cut(name, "]")
			continue
		}
		if name, text, found := strings.Cut(line, "="); found && in == section && strings.TrimSpace(name) == key {
			value = strings.TrimSpace(text)
		}
	}
	return value
}
