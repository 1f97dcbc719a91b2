package rack

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const cgroups = "/sys/fs/cgroup"

// cgroup is one group in each hierarchy, where a machine's processes are: machines in one group would get in each other's way.
type cgroup struct{ folders []string }

// newCgroup makes a group of a name beside this process.
func newCgroup(name string) (cgroup, error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return cgroup{}, fmt.Errorf("reading the cgroup of this process: %w", err)
	}
	var c cgroup
	for line := range strings.Lines(string(text)) {
		hierarchy, parent, ok := parseCgroup(strings.TrimSpace(line))
		if !ok {
			return c, fmt.Errorf("reading the cgroup of this process: %q", line)
		}
		folder := filepath.Join(parent, name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			return c, fmt.Errorf("making a cgroup: %w", err)
		}
		c.folders = append(c.folders, folder)
		if hierarchy == "cpuset" {
			if err := inheritCPUs(parent, folder); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

// parseCgroup reads a line of /proc/PID/cgroup: NUMBER:CONTROLLERS:PATH. It tells the hierarchy's name and the group's folder.
func parseCgroup(line string) (hierarchy, folder string, ok bool) {
	fields := strings.SplitN(line, ":", 3)
	if len(fields) != 3 {
		return "", "", false
	}
	hierarchy = strings.TrimPrefix(fields[1], "name=")
	if hierarchy == "" {
		hierarchy = "unified"
	}
	return hierarchy, filepath.Join(cgroups, hierarchy, fields[2]), true
}

// inheritCPUs fills what a new group of this hierarchy lacks.
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

// processes are the IDs of all that run in it and below.
func (c cgroup) processes() []int {
	var ids []int
	for _, folder := range c.folders {
		for _, group := range below(folder) {
			text, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
			if err != nil {
				continue // It has gone meanwhile.
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

// remove removes it in every hierarchy. All processes in it must have ended.
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

// below is a folder and all below it, parents first.
func below(folder string) []string {
	var folders []string
	// What cannot be read has gone meanwhile.
	_ = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	return folders
}
