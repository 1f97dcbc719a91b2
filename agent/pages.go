package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// settled is how long after its start an agent has done everything once.
const settled = 10 * time.Second

// releaseStartupPages gives back what only the start needed, when the Node is known and once more a little later: the
// first list, the first words on the bus and TLS run through much of the program too. See releaseProgram.
func releaseStartupPages(synced cache.Cache, timer clock.Clock) manager.RunnableFunc {
	return func(ctx context.Context) error {
		if !synced.WaitForCacheSync(ctx) {
			return nil
		}
		releaseMemory(ctx)
		select {
		case <-ctx.Done():
		case <-timer.After(settled):
			releaseMemory(ctx)
		}
		return nil
	}
}

func releaseMemory(ctx context.Context) {
	debug.FreeOSMemory()
	if err := releaseProgram(); err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("Kept the pages of the start", "reason", err.Error())
	}
}

// releaseProgram gives the program's own pages back. Registering every kind of the Kubernetes API runs through most of its
// text once, before main, and those pages count as this process' memory ever after: about 28 MiB on every node of the
// cluster. What is needed again is read in again from the page cache.
func releaseProgram() error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("finding the program: %w", err)
	}
	file, err := os.Open("/proc/self/smaps")
	if err != nil {
		return fmt.Errorf("reading the memory map: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	for _, m := range cleanMappings(file, program) {
		if _, _, errno := unix.Syscall(unix.SYS_MADVISE, m.start, m.end-m.start, unix.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("releasing %x-%x: %w", m.start, m.end, errno)
		}
	}
	return nil
}

// mapping is a range of addresses.
type mapping struct{ start, end uintptr }

// cleanMappings finds the mappings of a file that nothing was ever written to: read-only, and without anonymous pages. To
// release any other would lose what was written, such as the relocations of a program that is linked to run anywhere.
func cleanMappings(smaps io.Reader, path string) []mapping {
	var found []mapping
	var candidate *mapping
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 6 && strings.Contains(fields[0], "-"):
			candidate = readOnly(fields, path)
		case len(fields) == 3 && fields[0] == "Anonymous:" && fields[1] == "0" && candidate != nil:
			found = append(found, *candidate)
		}
	}
	return found
}

// readOnly reads a mapping's first line: addresses, permissions, offset, device, inode, path.
func readOnly(fields []string, path string) *mapping {
	var m mapping
	if fields[5] != path || strings.Contains(fields[1], "w") {
		return nil
	}
	if _, err := fmt.Sscanf(fields[0], "%x-%x", &m.start, &m.end); err != nil || m.end <= m.start {
		return nil
	}
	return &m
}
