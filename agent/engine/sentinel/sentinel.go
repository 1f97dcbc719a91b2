// Package sentinel detects the files by which a host asks for a reboot: /run/reboot-required on
// Debian, Ubuntu, Flatcar and others, and /run/reboot-needed on SUSE.
package sentinel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/reboot-operator/reboot-operator/agent/engine"
	"github.com/reboot-operator/reboot-operator/agent/engine/folder"
	"github.com/reboot-operator/reboot-operator/agent/engine/source"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/internal/message"
)

// Name is the engine's name in flags, reports and metrics.
const Name = "sentinel"

// period is the interval between two looks at the files if inotify reports nothing.
const period = time.Minute

// Engine watches the files. It is Absent if the folder of the Defaults is not mounted.
type Engine struct {
	source.Options

	// HostRoot is the path at which the host's file system is mounted; only the folders of the
	// files are needed. Required; "/" means this file system.
	HostRoot string
	// Files are absolute paths on the host. While one of them exists, the host needs a reboot. If
	// empty, Defaults is used. An engine with Files is never Optional.
	Files []string
}

// Run implements source.Engine.
func (e *Engine) Run(ctx context.Context, report func(engine.Report)) {
	files := e.Files
	if len(files) == 0 {
		files = Defaults
	}
	watched := folders(files)
	for i, folder := range watched {
		watched[i] = filepath.Join(e.HostRoot, folder)
	}
	changes := e.Changes(report)
	folder.Watch{
		Folders: func() []string { return watched },
		Look: func() {
			found := look(e.HostRoot, files)
			changes.Reach(engine.PresenceOf(found.missing, found.unreadable != ""), "")
			changes.Update(found.report())
		},
		Period: period, Clock: e.Clock, Again: e.Again,
	}.Run(ctx)
}

// Defaults are the files that are watched if none are named: the file of Debian, Ubuntu and
// Flatcar, and SUSE's. They are in memory and disappear with the boot.
var Defaults = []string{"/run/reboot-required", "/run/reboot-needed"}

// folders returns the folders of the files, each once.
func folders(files []string) []string {
	var all []string
	for _, file := range files {
		if folder := path.Dir(file); !slices.Contains(all, folder) {
			all = append(all, folder)
		}
	}
	return all
}

// observation is the result of one look. The zero value means that no file exists.
type observation struct {
	// files are the watched files, at least one.
	files []string
	// unreadable is the reason that folder, which should hold one of the files, cannot be read. It
	// is empty if every folder was readable.
	unreadable, folder string
	// missing is true if the folder does not exist.
	missing bool
	// present are the files that exist.
	present []string
	// packages are the packages that asked for the reboot, in that order.
	packages []string
}

// look checks which of the files exist. It does not follow a symbolic link that leaves the host's
// file system.
func look(hostRoot string, files []string) observation {
	o := observation{files: files}
	root, err := os.OpenRoot(hostRoot)
	if err != nil {
		return o.noFolder(path.Dir(files[0]), err)
	}
	defer func() { _ = root.Close() }()
	for _, folder := range folders(files) {
		if err := isFolder(root.Stat(below(folder))); err != nil && o.unreadable == "" {
			o = o.noFolder(folder, err)
		}
	}
	for _, file := range files {
		found, err := root.Lstat(below(file))
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		case err != nil:
			if o.unreadable == "" {
				o.folder, o.unreadable = path.Dir(file), folder.Reason(err)
			}
		case found.IsDir():
			// If a container mounts the file before it exists, a folder of that name remains.
		default:
			o.present = append(o.present, file)
			o.packages = appendPackages(o.packages, readList(root, below(file)+".pkgs"))
		}
	}
	return o
}

// below turns a path of the host into a path relative to its root.
func below(name string) string { return path.Join(".", name) }

// isFolder returns an error unless found is a folder.
func isFolder(found fs.FileInfo, err error) error {
	if err == nil && !found.IsDir() {
		return syscall.ENOTDIR
	}
	return err
}

// noFolder records a folder that cannot be read, and whether it is missing or something other than
// a folder.
func (o observation) noFolder(name string, err error) observation {
	o.missing = errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	o.folder, o.unreadable = name, folder.Reason(err)
	return o
}

// maxListBytes is more than a message can hold.
const maxListBytes = 8 << 10

// readList reads whole lines from the beginning of a list of packages. The list is optional: the
// file counts even if the list is missing or unreadable.
func readList(root *os.Root, list string) string {
	content, err := folder.Read(root, list, maxListBytes)
	if err != nil {
		return ""
	}
	if len(content) == maxListBytes {
		content = content[:bytes.LastIndexByte(content, '\n')+1]
	}
	return string(content)
}

// report returns the observation as a report. Any existing file is a need, even if another folder
// is unreadable. The content of the files is only for people.
func (o observation) report() engine.Report {
	unread := ""
	if o.unreadable != "" {
		unread = fmt.Sprintf("The host's %s cannot be read: %s.", o.folder, o.unreadable)
	}
	switch {
	case len(o.present) > 0:
		return engine.Report{
			Engine: Name, State: engine.Needed, Reason: v1alpha1.ReasonSentinelPresent,
			Message: engine.Shorten(strings.TrimSpace(needMessage(o.present, o.packages) + " " + unread)),
		}
	case unread != "":
		return engine.Unreachable(Name, unread)
	}
	return engine.UpToDate(Name, none(o.files))
}

// none returns the message that none of the files exists.
func none(files []string) string {
	last := len(files) - 1
	if last == 0 {
		return files[0] + " does not exist on the host."
	}
	return fmt.Sprintf("Neither %s nor %s exists on the host.", strings.Join(files[:last], ", "), files[last])
}

// maxNamed is the largest number of packages in a message.
const maxNamed = 16

// needMessage names the files, as many packages as fit, and the number of the others.
func needMessage(present, packages []string) string {
	exists := present[0] + " exists on the host"
	if len(present) > 1 {
		exists = strings.Join(present, " and ") + " exist on the host"
	}
	for named := min(len(packages), maxNamed); named > 0; named-- {
		if text := exists + ", because of " + message.Names(packages, named) + "."; len(text) <= engine.MaxMessageBytes {
			return text
		}
	}
	return engine.Shorten(exists + ".")
}

// appendPackages reads a list of packages, one name per line. Names are often repeated. Lines that
// are not package names are skipped.
func appendPackages(packages []string, content string) []string {
	for line := range strings.Lines(content) {
		name := strings.TrimSpace(line)
		if isPackage(name) && !slices.Contains(packages, name) {
			packages = append(packages, name)
		}
	}
	return packages
}

// isPackage reports whether a text is a package name of Debian or another distribution, with or
// without a version.
func isPackage(name string) bool {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return name != "" && len(name) <= 64 && strings.Trim(name, letters+"+._~:=-") == "" &&
		strings.TrimLeft(name, letters) != name
}
