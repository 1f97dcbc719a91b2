package rack

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
)

const cgroups = "/sys/fs/cgroup"

// cgroup is one group per hierarchy for the processes of one machine. Machines in the same group
// would disturb each other.
type cgroup struct {
	folders []string
	// unified is true if this machine has cgroup v2 alone. Then folders holds one folder, with the
	// controllers that a kubelet needs.
	unified bool
}

// isUnified reports whether this machine has cgroup v2 alone, as distributions have today.
func isUnified() bool {
	_, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers"))
	return err == nil
}

// newCgroup makes a group next to that of this process, or on cgroup v2 below it: see delegate.
func newCgroup(name string) (cgroup, error) {
	self, err := procfs.Self()
	if err != nil {
		return cgroup{}, fmt.Errorf("reading this process: %w", err)
	}
	groups, err := self.Cgroups()
	if err != nil {
		return cgroup{}, fmt.Errorf("reading the cgroup of this process: %w", err)
	}
	c := cgroup{unified: isUnified()}
	for _, group := range groups {
		hierarchy := cmp.Or(strings.TrimPrefix(strings.Join(group.Controllers, ","), "name="), "unified")
		parent := filepath.Join(cgroups, hierarchy, group.Path)
		if c.unified {
			parent = strings.TrimSuffix(filepath.Join(cgroups, group.Path), "/"+leaf)
		}
		folder := filepath.Join(parent, name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			return c, fmt.Errorf("making a cgroup: %w", err)
		}
		c.folders = append(c.folders, folder)
		switch {
		case c.unified:
			err = delegate(parent, folder)
		case hierarchy == "cpuset":
			err = inheritCPUs(parent, folder)
		}
		if err != nil {
			return c, err
		}
	}
	return c, nil
}

// leaf is the group of this process on cgroup v2 after its own group was divided.
const leaf = "supervisor"

// delegate gives the groups of machines all cgroup v2 controllers that this process has. Except for
// the root, only a group without processes can pass controllers down. The processes in this group,
// which run.sh started for the rack, therefore move to a leaf below it and stay there: the group
// ends with them.
func delegate(parent, folder string) error {
	if _, err := os.Stat(filepath.Join(parent, "cgroup.type")); err == nil { // the root has none
		if err := moveAll(parent, filepath.Join(parent, leaf)); err != nil {
			return err
		}
	}
	for _, group := range []string{parent, folder} {
		text, err := os.ReadFile(filepath.Join(group, "cgroup.controllers"))
		if err != nil {
			return fmt.Errorf("reading a cgroup: %w", err)
		}
		for controller := range strings.FieldsSeq(string(text)) {
			if err := os.WriteFile(filepath.Join(group, "cgroup.subtree_control"), []byte("+"+controller), 0o600); err != nil {
				return fmt.Errorf("delegating cgroup controller %s: %w", controller, err)
			}
		}
	}
	return nil
}

// moveAll moves all processes from one cgroup v2 group to another.
func moveAll(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return fmt.Errorf("making a cgroup: %w", err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(from, "cgroup.procs"))
		if err != nil {
			return fmt.Errorf("reading a cgroup: %w", err)
		}
		if len(text) == 0 {
			return nil
		}
		for id := range bytes.FieldsSeq(text) {
			err := os.WriteFile(filepath.Join(to, "cgroup.procs"), id, 0o600)
			if err != nil && !errors.Is(err, syscall.ESRCH) { // The process has ended.
				return fmt.Errorf("moving process %s to a cgroup: %w", id, err)
			}
		}
	}
}

// forBoot returns the folders for the processes of one boot. On cgroup v2 systemd-nspawn divides
// its group and leaves it divided, so that processes cannot enter it again. Each boot therefore
// needs its own group.
func (c cgroup) forBoot(number int) ([]string, error) {
	if !c.unified {
		return c.folders, nil
	}
	folder := filepath.Join(c.folders[0], fmt.Sprintf("boot%d", number))
	if err := os.Mkdir(folder, 0o755); err != nil {
		return nil, fmt.Errorf("making a cgroup: %w", err)
	}
	return []string{folder}, nil
}

// inheritCPUs sets what a new group of this hierarchy lacks.
func inheritCPUs(parent, folder string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		text, err := os.ReadFile(filepath.Join(parent, file))
		if err != nil {
			return fmt.Errorf("reading a cgroup: %w", err)
		}
		if err := os.WriteFile(filepath.Join(folder, file), text, 0o600); err != nil {
			return fmt.Errorf("writing a cgroup: %w", err)
		}
	}
	return nil
}

// processes returns the IDs of all processes in the group and below it.
func (c cgroup) processes() []int {
	var ids []int
	for _, folder := range c.folders {
		for _, group := range below(folder) {
			text, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
			if err != nil {
				continue // It was removed in between.
			}
			for field := range bytes.FieldsSeq(text) {
				if id, err := strconv.Atoi(string(field)); err == nil && !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
	}
	return ids
}

// remove removes the group from every hierarchy. All processes in it must have ended.
func (c cgroup) remove() error {
	var errs []error
	for _, folder := range c.folders {
		for _, group := range slices.Backward(below(folder)) {
			if err := os.Remove(group); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// below returns a folder and everything below it, parents first.
func below(folder string) []string {
	var folders []string
	// A folder that cannot be read was removed in between.
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	return folders
}
