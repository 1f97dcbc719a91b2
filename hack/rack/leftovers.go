package rack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

const (
	// watches is the number of inotify instances that a user may have. The kubelets and containerds
	// of several machines all run as root and need more than the usual 128.
	watches     = "/proc/sys/fs/inotify/max_user_instances"
	wantWatches = 1024
	// watchesBefore is the file in a rack's folder with the previous number.
	watchesBefore = "inotify-max-user-instances"
	// goneLimit is the time that machines of a dead rack get to end.
	goneLimit = 40 * time.Second
)

// moreWatches allows more inotify instances and saves the previous number in a rack's folder.
func moreWatches(folder string) error {
	before, err := os.ReadFile(watches)
	if err != nil {
		return fmt.Errorf("reading %s: %w", watches, err)
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(before))); err == nil && n >= wantWatches {
		return nil
	}
	if err := os.WriteFile(filepath.Join(folder, watchesBefore), before, 0o600); err != nil {
		return fmt.Errorf("noting %s: %w", watches, err)
	}
	return os.WriteFile(watches, []byte(strconv.Itoa(wantWatches)), 0o600)
}

// restoreWatches restores the number that a rack has saved in its folder, if any.
func restoreWatches(folder string) error {
	before, err := os.ReadFile(filepath.Join(folder, watchesBefore))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading what %s was: %w", watches, err)
	}
	return os.WriteFile(watches, before, 0o600)
}

// Sweep removes what killed racks left behind. Their machines halt by themselves, but folders,
// cgroups and a kernel setting remain.
func Sweep() error {
	var errs []error
	for name, c := range orphans() {
		for deadline := time.Now().Add(goneLimit); len(c.processes()) > 0; {
			if time.Now().After(deadline) {
				killAll(c)
			}
			<-time.After(100 * time.Millisecond)
		}
		if err := c.remove(); err != nil {
			errs = append(errs, fmt.Errorf("removing cgroup %s: %w", name, err))
		}
	}
	// The pattern is valid, so Glob cannot fail.
	folders, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, folder := range folders {
		if process.StarterIsGone(prefix, filepath.Base(folder)) {
			errs = append(errs, restoreWatches(folder), os.RemoveAll(folder))
		}
	}
	return errors.Join(errs...)
}

// orphans returns the groups of machines whose rack has died, by name.
func orphans() map[string]cgroup {
	found := map[string]cgroup{}
	for _, folder := range below(cgroups) {
		if name := filepath.Base(folder); process.StarterIsGone(prefix, name) {
			c := found[name]
			c.folders = append(c.folders, folder)
			found[name] = c
		}
	}
	return found
}

// killAll is the last resort. It kills systemd-nspawn last, because the machine would outlive it.
func killAll(c cgroup) {
	for _, id := range slices.Backward(c.processes()) {
		// The process may have ended already.
		_ = syscall.Kill(id, syscall.SIGKILL)
	}
}
