package sentinel

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

// Below the host's root.
const (
	directory = "run"
	file      = "run/reboot-required"
	list      = "run/reboot-required.pkgs"
)

// look finds out what there is. A symbolic link that leaves the host's file system is not followed.
func look(hostRoot string) observation {
	if err := isFolder(os.Stat(hostRoot)); err != nil {
		return noFolder(err)
	}
	root, err := os.OpenRoot(hostRoot)
	if err != nil {
		return noFolder(err)
	}
	defer func() { _ = root.Close() }()
	if err := isFolder(root.Stat(directory)); err != nil {
		return noFolder(err)
	}
	found, err := root.Lstat(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return observation{}
	case err != nil:
		return observation{unreadable: reason(err)}
	case found.IsDir():
		// A container that mounts the file before it exists leaves a folder of its name.
		return observation{}
	}
	return observation{present: true, packages: parsePackages(readList(root))}
}

// isFolder makes an error of what is none.
func isFolder(found fs.FileInfo, err error) error {
	if err == nil && !found.IsDir() {
		return syscall.ENOTDIR
	}
	return err
}

// noFolder tells a folder that does not exist, or is something else, from one that cannot be read.
func noFolder(err error) observation {
	missing := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
	return observation{unreadable: reason(err), missing: missing}
}

// reason is what went wrong, without the path: that is this container's, not the host's.
func reason(err error) string {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	return err.Error()
}

// maxListBytes is more than a message can tell.
const maxListBytes = 8 << 10

// readList reads the beginning of the list of packages, whole lines only. The list is an extra: without one, or with one
// that cannot be read, the file counts just the same.
func readList(root *os.Root) string {
	// A pipe of that name would hold us up for ever.
	if found, err := root.Lstat(list); err != nil || !found.Mode().IsRegular() {
		return ""
	}
	opened, err := root.Open(list)
	if err != nil {
		return ""
	}
	defer func() { _ = opened.Close() }()
	content, err := io.ReadAll(io.LimitReader(opened, maxListBytes))
	if err != nil {
		return ""
	}
	if len(content) == maxListBytes {
		return string(content[:strings.LastIndexByte(string(content), '\n')+1])
	}
	return string(content)
}
