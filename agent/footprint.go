package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// settled is when an agent that has started has nothing more to do than to wait.
const settled = 10 * time.Second

// shrink makes an agent small. Nearly all of a program of this size is mapped while it starts, because the kernel maps 16
// pages for each one that is touched, and then a tenth of it is used: without this an agent takes 33 MiB of every node,
// with it 20, and never more than 27.
func shrink(log logr.Logger) {
	if err := giveBack(); err != nil {
		log.V(1).Info("Kept the pages of the program", "reason", err.Error())
	}
}

// shrinkOnceSettled gives back what starting has mapped.
func shrinkOnceSettled(clock clock.Clock) manager.RunnableFunc {
	return func(ctx context.Context) error {
		select {
		case <-ctx.Done():
		case <-clock.After(settled):
			shrink(ctrl.LoggerFrom(ctx))
		}
		return nil
	}
}

// giveBack unmaps the pages of the program's own file. They are read-only and clean: the kernel maps them again from the
// page cache when they are used.
func giveBack() error {
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("reading what is mapped: %w", err)
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the program: %w", err)
	}
	for _, area := range cleanAreas(string(smaps), program) {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, area.start, area.end-area.start, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("unmapping pages: %w", errno)
		}
	}
	return nil
}

// area is a part of the address space.
type area struct{ start, end uintptr }

// cleanAreas finds in smaps the read-only areas of a file none of whose pages was ever written to. (The loader of a
// position-independent program writes to some before it makes them read-only: those would be lost.)
func cleanAreas(smaps, file string) []area {
	var clean []area
	var current area
	var ours bool
	for line := range strings.Lines(smaps) {
		var a area
		var mode string
		if n, _ := fmt.Sscanf(line, "%x-%x %s", &a.start, &a.end, &mode); n == 3 {
			current, ours = a, strings.HasSuffix(strings.TrimSpace(line), " "+file) && !strings.Contains(mode, "w")
			continue
		}
		if ours && strings.HasPrefix(line, "Anonymous:") && strings.Fields(line)[1] == "0" {
			clean = append(clean, current)
		}
	}
	return clean
}
