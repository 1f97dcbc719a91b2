package process

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Children are the names of the processes that another one has started, by process ID; those that have ended are left out.
func Children(parent int) (map[int]string, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, fmt.Errorf("looking for processes: %w", err)
	}
	children := map[int]string{}
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		// pid (name) state ppid …; the name may have spaces and parentheses of its own.
		name, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
		fields := bytes.Fields(stat[end+1:])
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && string(fields[1]) == strconv.Itoa(parent) && string(fields[0]) != "Z" {
			children[pid] = string(stat[name+1 : end])
		}
	}
	return children, nil
}
