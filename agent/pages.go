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
	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// calm is how long after a change of the Node most of what it brought about has been done, and settled is when all has.
	calm, settled = 500 * time.Millisecond, 10 * time.Second
	// garbage is how much of it there may be beside what is in use, in percent, before it is collected. An agent has next to
	// nothing to do: it can collect more often than other programs, which let it come to 100.
	garbage = 25
)

// collectEarly sets garbage, unless GOGC says otherwise.
func collectEarly(env func(string) string) {
	if env("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
}

// releasePages gives back what only one stage needed: the start, a look and a drain each run through another part of the
// program, and the Node changes when one is over. See releaseProgram. At rest that is once in five minutes, when the kubelet
// writes.
func releasePages(nodes cache.Cache, timer clock.Clock) manager.RunnableFunc {
	return func(ctx context.Context) error {
		informer, err := nodes.GetInformer(ctx, &corev1.Node{})
		if err != nil {
			return fmt.Errorf("watching the Node: %w", err)
		}
		changed := make(chan struct{}, 1)
		ring := func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		}
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { ring() }, UpdateFunc: func(any, any) { ring() },
		})
		if err != nil {
			return fmt.Errorf("hearing of changes of the Node: %w", err)
		}
		releaseMemory(ctx)
		ring() // the start is a stage, too
		onceCalm(ctx, changed, timer, func() { releaseMemory(ctx) })
		return nil
	}
}

// onceCalm calls release after each change, once it is calm and once more when all has settled, until ctx ends.
func onceCalm(ctx context.Context, changed <-chan struct{}, timer clock.Clock, release func()) {
	var next <-chan time.Time // nil: everything has settled
	for then := settled; ; {
		news := changed
		if next != nil && then == settled {
			news = nil // what comes meanwhile does not put it off
		}
		select {
		case <-ctx.Done():
			return
		case <-news:
			next, then = timer.After(calm), settled
		case <-next:
			release()
			next = nil
			if then > 0 {
				next, then = timer.After(then), 0
			}
		}
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
