package kernel

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/reboot-operator/reboot-operator/agent/engine/folder"
)

// boot is the folder of kernel images, below the host's root.
const boot = "boot"

// maxEntries is far more than a folder of kernels has.
const maxEntries = 1024

// host is the host's file system. A symbolic link that leaves it is not followed.
type host struct {
	root *os.Root
	// modules is the folder that has a folder for each kernel, below the root.
	modules string
}

// open opens the host's file system. It must be closed.
func open(hostRoot string) (*host, error) {
	root, err := os.OpenRoot(hostRoot)
	if err != nil {
		return nil, unreadable("its file system", err)
	}
	merged, split := &host{root, "usr/lib/modules"}, &host{root, "lib/modules"}
	if found, err := merged.modulesOf(); err == nil && len(found) == 0 {
		if found, _ = split.modulesOf(); len(found) > 0 {
			return split, nil // A host that keeps /lib apart from /usr/lib.
		}
	}
	return merged, nil
}

// unreadable is an error for people: the path in err is this container's.
func unreadable(what string, err error) error { return fmt.Errorf("%s: %s", what, folder.Reason(err)) }

func (h *host) close() { _ = h.root.Close() } // It was only read.

// installed are the kernels that could boot, complete as far as can be seen. A folder of modules alone may be what a
// removed kernel left, and one without modules.dep what is being installed.
func (h *host) installed() ([]release, error) {
	images, err := h.images()
	if err != nil {
		return nil, err
	}
	candidates, err := h.modulesOf()
	if err != nil || len(candidates) == 0 {
		return images, err
	}
	hasImage := func(r release) bool {
		is := func(image release) bool { return image.text == r.text }
		return slices.ContainsFunc(images, is) || h.has(path.Join(h.modules, r.text, "vmlinuz"))
	}
	var complete, imageless []release
	imagesSeen := len(images) > 0
	for _, r := range candidates {
		switch {
		case !h.has(path.Join(h.modules, r.text, "modules.dep")):
		case hasImage(r):
			complete, imagesSeen = append(complete, r), true
		default:
			imageless = append(imageless, r)
		}
	}
	if imagesSeen {
		return complete, nil
	}
	return imageless, nil // There are no images here: they are not mounted, or elsewhere.
}

// modulesOf are the kernels that have a folder of modules.
func (h *host) modulesOf() ([]release, error) {
	return h.releases(h.modules, "", true)
}

// images are the kernels that have a vmlinuz in /boot.
func (h *host) images() ([]release, error) {
	return h.releases(boot, "vmlinuz-", false)
}

// releases are the kernels by which folders, or files, of a folder are named, behind a prefix. Without the folder there are none.
func (h *host) releases(name, prefix string, folders bool) ([]release, error) {
	opened, err := h.root.Open(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable("/"+name, err)
	}
	defer func() { _ = opened.Close() }()
	entries, err := opened.ReadDir(maxEntries)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, unreadable("/"+name, err)
	}
	var releases []release
	for _, entry := range entries {
		text, found := strings.CutPrefix(entry.Name(), prefix)
		if r, ok := parseRelease(text); ok && found && entry.IsDir() == folders {
			releases = append(releases, r)
		}
	}
	return releases, nil
}

func (h *host) has(name string) bool {
	_, err := h.root.Stat(name)
	return err == nil
}

// maxReleaseBytes is what uname has room for.
const maxReleaseBytes = 64

// readRelease reads the release of the running kernel.
func readRelease(file string) (release, error) {
	const what = "the running one's release"
	content, err := os.ReadFile(file)
	if err != nil {
		return release{}, unreadable(what, err)
	}
	r, ok := parseRelease(strings.TrimSpace(string(content)))
	if !ok {
		return release{}, unreadable(what, errors.New("it is no version"))
	}
	return r, nil
}
