package kernel

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
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
		return nil, fmt.Errorf("opening the host's file system: %w", err)
	}
	merged, split := &host{root, "usr/lib/modules"}, &host{root, "lib/modules"}
	if len(merged.modulesOf()) == 0 && len(split.modulesOf()) > 0 {
		return split, nil // A host that keeps /lib apart from /usr/lib.
	}
	return merged, nil
}

func (h *host) close() { _ = h.root.Close() } // It was only read.

// installed are the kernels that could boot, complete as far as can be seen. A folder of modules alone may be what a
// removed kernel left, and one without modules.dep what is being installed.
func (h *host) installed() []release {
	candidates, images := h.modulesOf(), h.images()
	if len(candidates) == 0 {
		return images
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
		return complete
	}
	return imageless // There are no images here: they are not mounted, or elsewhere.
}

// modulesOf are the kernels that have a folder of modules.
func (h *host) modulesOf() []release {
	var releases []release
	for _, entry := range h.entries(h.modules) {
		if r, ok := parseRelease(entry.Name()); ok && entry.IsDir() {
			releases = append(releases, r)
		}
	}
	return releases
}

// images are the kernels that have a vmlinuz in /boot.
func (h *host) images() []release {
	var releases []release
	for _, entry := range h.entries(boot) {
		name, isImage := strings.CutPrefix(entry.Name(), "vmlinuz-")
		if r, ok := parseRelease(name); ok && isImage && !entry.IsDir() {
			releases = append(releases, r)
		}
	}
	return releases
}

func (h *host) entries(name string) []os.DirEntry {
	opened, err := h.root.Open(name)
	if err != nil {
		return nil
	}
	defer func() { _ = opened.Close() }()
	entries, _ := opened.ReadDir(maxEntries) // What was read until an error is what there is.
	return entries
}

func (h *host) has(name string) bool {
	_, err := h.root.Stat(name)
	return err == nil
}

// maxReleaseBytes is what uname has room for.
const maxReleaseBytes = 64

// readRelease reads the release of the running kernel.
func readRelease(file string) (release, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return release{}, fmt.Errorf("reading the running kernel's release: %w", err)
	}
	r, ok := parseRelease(strings.TrimSpace(string(content)))
	if !ok {
		return release{}, fmt.Errorf("reading the running kernel's release: %.64q is none", content)
	}
	return r, nil
}
