package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// target is one fuzz test.
type target struct {
	// folder of its package, below the repository's root.
	folder string
	// name of the function.
	name string
}

func (t target) String() string { return t.folder + "." + t.name }

// corpus is the folder of its inputs in the repository, below the root.
func (t target) corpus() string { return filepath.Join(t.folder, "testdata", "fuzz", t.name) }

var fuzzTest = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(\w+ \*testing\.F\)`)

// findTargets finds all targets that match, by folder.
func findTargets(root string, only *regexp.Regexp) ([]target, error) {
	var targets []target
	for _, top := range []string{"agent", "api", "controllers", "hack", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			folder, err := filepath.Rel(root, filepath.Dir(path))
			for _, match := range fuzzTest.FindAllSubmatch(text, -1) {
				if t := (target{folder, string(match[1])}); only.MatchString(t.String()) {
					targets = append(targets, t)
				}
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("looking for fuzz tests: %w", err)
		}
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("no fuzz test matches %q", only)
	}
	return targets, nil
}
