// Package kernel finds out whether a newer kernel is installed than the one that runs, for hosts that report no
// pending update. It compares names: the boot loader decides in the end, so this engine is off unless it is named.
package kernel

import (
	"context"
	"fmt"
	"path/filepath"
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

// report is what a look reports to others. A need is a kernel of the running one's flavour that is newer. That there are older
// ones only is none: the running one may come from elsewhere, and would again after a reboot.
func report(o observation, unread error) engine.Report {
	newest, found := newest(o.installed, o.running.flavour)
	switch {
	case unread != nil:
		return engine.Unreachable(Name, fmt.Sprintf("The host's kernels cannot be read: %v.", unread))
	case len(o.installed) == 0:
		return engine.Unreachable(Name, "No kernel is found in the host's /usr/lib/modules, /lib/modules or /boot.")
	case found && newest.newerThan(o.running):
		need := engine.Staged(Name, newest.text, fmt.Sprintf("Kernel %s is installed, and %s is running.", newest.text, o.running.text))
		need.Running = o.running.text
		return need
	}
	return engine.UpToDate(Name, fmt.Sprintf("Kernel %s is running, and no newer one of its kind is installed.", o.running.text))
}
