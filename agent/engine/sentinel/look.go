package sentinel

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/reboot-operator/reboot-operator/agent/engine/folder"
)

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

// isFolder makes an error of what is none.
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
