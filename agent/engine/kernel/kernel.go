// Package kernel reports whether a newer kernel is installed than the one that runs, for hosts that
// report no pending update. It compares names only. The boot loader decides in the end, so this
// engine runs only if --engines names it.
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

// period is the interval between two comparisons if inotify reports nothing.
const period = 10 * time.Minute

// Engine compares kernels.
type Engine struct {
	source.Options

	// HostRoot is the path at which the host's file system is mounted; /usr/lib/modules and /boot
	// are enough. Required; "/" means this file system.
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

// folders returns the folders that change when a kernel is installed. depmod writes into the folder
// of the kernel itself.
func (e *Engine) folders() []string {
	h, err := open(e.HostRoot)
	if err != nil {
		return nil
	}
	defer h.close()
	paths := []string{filepath.Join(e.HostRoot, h.modules), filepath.Join(e.HostRoot, boot)}
	found, _ := h.modulesOf() // look reports the error.
	for _, r := range found {
		paths = append(paths, filepath.Join(e.HostRoot, h.modules, r.text))
	}
	return paths
}

// observation is the result of one look.
type observation struct {
	// running kernel.
	running release
	// installed kernels of any flavour.
	installed []release
}

// look finds the running kernel and the installed ones. Its error names what cannot be read.
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

// report returns the observation as a report. A newer kernel of the running flavour is a need. An
// older one is not: the running kernel may come from elsewhere, and would again after a reboot.
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

// boot is the folder of kernel images below the host's root.
const boot = "boot"

// maxEntries is far more than a folder of kernels has.
const maxEntries = 1024

// host reads the host's file system and does not follow a symbolic link that leaves it.
type host struct {
	root *os.Root
	// modules is the folder, below the root, that has one folder per kernel.
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
			return split, nil // This host keeps /lib separate from /usr/lib.
		}
	}
	return merged, nil
}

// unreadable returns an error for people, without the path in err: that is a path of this
// container.
func unreadable(name string, err error) error { return fmt.Errorf("%s: %s", name, folder.Reason(err)) }

func (h *host) close() { _ = h.root.Close() } // It was only read.

// installed returns the kernels that could boot and are complete as far as we can see. A folder of
// modules alone may be left over from a removed kernel, and one without modules.dep is still being
// installed.
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
		matches := func(image release) bool { return image.text == r.text }
		return slices.ContainsFunc(images, matches) || h.has(path.Join(h.modules, r.text, "vmlinuz"))
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
	return imageless, nil // The images are not mounted, or are somewhere else.
}

// modulesOf returns the kernels that have a folder of modules.
func (h *host) modulesOf() ([]release, error) {
	return h.releases(h.modules, "", true)
}

// releases returns the kernels after which the entries of a folder are named, without their prefix.
// A missing folder has none.
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
	if errors.Is(err, fs.ErrNotExist) { // It was removed in between.
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

// maxReleaseBytes is the size of the field in uname.
const maxReleaseBytes = 64

// readRelease reads the release of the running kernel.
func readRelease(file string) (release, error) {
	const name = "the running one's release"
	content, err := os.ReadFile(file)
	if err != nil {
		return release{}, unreadable(name, err)
	}
	r, ok := parseRelease(strings.TrimSpace(string(content)))
	if !ok {
		return release{}, unreadable(name, errors.New("it is not a version"))
	}
	return r, nil
}
