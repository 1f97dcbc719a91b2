// Package kernel finds out whether a newer kernel is installed than the one that runs, for hosts that report no
// pending update. It compares names: the boot loader decides in the end, so this engine is off unless it is named.
package kernel

import (
	"context"
	"errors"
	"fmt"
	"io"
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
)

// Name is the engine's name in flags, reports and metrics.
const Name = "kernel"

// period is how often the kernels are compared without any occasion.
const period = 10 * time.Minute

// Engine compares kernels.
type Engine struct {
	source.Options

	// HostRoot is where the host's file system is mounted; its /usr/lib/modules and /boot are enough. Required; "/" is
	// this one.
	HostRoot string
	// ReleaseFile holds the release of the running kernel: /proc/sys/kernel/osrelease. Required.
	ReleaseFile string
}

// Run implements source.Engine.
func (e *Engine) Run(ctx context.Context, take func(engine.Report)) {
	changes := e.Changes(take)
	folder.Watch{
		Folders: e.folders, Period: period, Clock: e.Clock, Again: e.Again,
		Look: func() {
			r := report(e.look())
			changes.Reach(engine.PresenceOf(false, r.State == engine.Unknown), "")
			changes.Update(r)
		},
	}.Run(ctx)
}

// folders are those in which something appears when a kernel is installed: depmod writes into the kernel's own.
func (e *Engine) folders() []string {
	h, err := open(e.HostRoot)
	if err != nil {
		return nil
	}
	defer h.close()
	paths := []string{filepath.Join(e.HostRoot, h.modules), filepath.Join(e.HostRoot, boot)}
	found, _ := h.modulesOf() // The look reports what is wrong.
	for _, r := range found {
		paths = append(paths, filepath.Join(e.HostRoot, h.modules, r.text))
	}
	return paths
}

// observation is what a look found.
type observation struct {
	// running kernel.
	running release
	// installed kernels of any flavour.
	installed []release
}

// look finds out what runs and what is installed. An error states what cannot be read.
func (e *Engine) look() (observation, error) {
	running, err := readRelease(e.ReleaseFile)
	if err != nil {
		return observation{}, err
	}
	h, err := open(e.HostRoot)
	if err != nil {
		return observation{}, err
	}
	defer h.close()
	installed, err := h.installed()
	return observation{running, installed}, err
}

// report is what a look reports to others. A need is a kernel of the running one's flavour that is newer. Older kernels
// are not a need: the running one may come from elsewhere, and would again after a reboot.
func report(o observation, unread error) engine.Report {
	newer := slices.DeleteFunc(slices.Clone(o.installed), func(r release) bool {
		return r.flavour != o.running.flavour || compareReleases(r, o.running) <= 0
	})
	switch {
	case unread != nil:
		return engine.Unreachable(Name, fmt.Sprintf("The host's kernels cannot be read: %v.", unread))
	case len(o.installed) == 0:
		return engine.Unreachable(Name, "No kernel is found in the host's /usr/lib/modules, /lib/modules or /boot.")
	case len(newer) > 0:
		newest := slices.MaxFunc(newer, compareReleases)
		need := engine.Staged(Name, newest.text, fmt.Sprintf("Kernel %s is installed, and %s is running.", newest.text, o.running.text))
		need.Running = o.running.text
		return need
	}
	return engine.UpToDate(Name, fmt.Sprintf("Kernel %s is running, and no newer one of its kind is installed.", o.running.text))
}

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
	images, err := h.releases(boot, "vmlinuz-", false)
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
	if errors.Is(err, fs.ErrNotExist) { // it was removed since
		return nil, nil
	}
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
