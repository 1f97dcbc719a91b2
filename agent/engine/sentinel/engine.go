// Package sentinel detects the files by which a host asks for a reboot: /run/reboot-required of Debian, Ubuntu, Flatcar and
// others, and SUSE's /run/reboot-needed.
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

// period is how often the files are looked for without any occasion.
const period = time.Minute

// Engine watches the files. It is Absent where the folder of the Defaults is not mounted.
type Engine struct {
	source.Options

	// HostRoot is where the host's file system is mounted; the folders of the files are enough. Required; "/" is this one.
	HostRoot string
	// Files are the host's files that ask for a reboot while they exist: absolute paths. Empty: Defaults. An engine with Files is
	// not Optional.
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
			seen := look(e.HostRoot, files)
			changes.Reach(engine.PresenceOf(seen.missing, seen.unreadable != ""), "")
			changes.Update(seen.report())
		},
		Period: period, Clock: e.Clock, Again: e.Again,
	}.Run(ctx)
}

// Defaults are the files that ask for a reboot where none are named: the one of Debian, Ubuntu and Flatcar, and SUSE's. They
// lie in memory and are gone after the boot.
var Defaults = []string{"/run/reboot-required", "/run/reboot-needed"}

// folders are those of the files, each once.
func folders(files []string) []string {
	var all []string
	for _, file := range files {
		if folder := path.Dir(file); !slices.Contains(all, folder) {
			all = append(all, folder)
		}
	}
	return all
}

// observation is what a look found. The zero one is no file.
type observation struct {
	// files are those that ask for a reboot, at least one.
	files []string
	// unreadable states why folder, which should hold one of them, cannot be read. Empty: all of them were.
	unreadable, folder string
	// missing reports that it is unreadable because there is no such folder.
	missing bool
	// present are those of the files that exist.
	present []string
	// packages that asked for the reboot, in the order in which they did.
	packages []string
}

// look finds out which of the files there are. A symbolic link that leaves the host's file system is not followed.
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
			// A container that mounts the file before it exists leaves a folder of its name.
		default:
			o.present = append(o.present, file)
			o.packages = appendPackages(o.packages, readList(root, below(file)+".pkgs"))
		}
	}
	return o
}

// below is a path of the host as one of its root.
func below(name string) string { return path.Join(".", name) }

// isFolder makes an error of what is not a folder.
func isFolder(found fs.FileInfo, err error) error {
	if err == nil && !found.IsDir() {
		return syscall.ENOTDIR
	}
	return err
}

// noFolder distinguishes a folder that does not exist, or is something else, from one that cannot be read.
func (o observation) noFolder(name string, err error) observation {
	o.missing = errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	o.folder, o.unreadable = name, folder.Reason(err)
	return o
}

// maxListBytes is more than a message can hold.
const maxListBytes = 8 << 10

// readList reads the beginning of a list of packages, whole lines only. The list is an extra: without one, or with one
// that cannot be read, the file counts just the same.
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

// report is what the observation reports to others. Its content is for people; only that a file exists counts, also where another
// one cannot be looked for.
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

// none reports that none of the files exists.
func none(files []string) string {
	last := len(files) - 1
	if last == 0 {
		return files[0] + " does not exist on the host."
	}
	return fmt.Sprintf("Neither %s nor %s exists on the host.", strings.Join(files[:last], ", "), files[last])
}

// maxNamed is how many packages a message names at most.
const maxNamed = 16

// needMessage names the files, as many of the packages as there is room for, and how many are left.
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

// appendPackages reads a list of packages: a name on each line, often the same one several times. What is no name of a
// package is passed over.
func appendPackages(packages []string, content string) []string {
	for line := range strings.Lines(content) {
		name := strings.TrimSpace(line)
		if isPackage(name) && !slices.Contains(packages, name) {
			packages = append(packages, name)
		}
	}
	return packages
}

// isPackage takes the names of Debian's packages and of others', with a version or without.
func isPackage(name string) bool {
	const letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return name != "" && len(name) <= 64 && strings.Trim(name, letters+"+._~:=-") == "" &&
		strings.TrimLeft(name, letters) != name
}
