package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSoak replaces all programs that soak.sh runs by a stub that prints its arguments.
func TestSoak(t *testing.T) {
	root := t.TempDir()
	stub := []byte(`#!/bin/sh` + "\n" + `echo "$0 $*: first $FIRST, $SEEDS seeds, at least $SEEDS_AT_LEAST, seed $SEED, $NODES nodes."`)
	for _, name := range []string{"bin/go", "bin/chaos", "bin/bench", "hack/controlplane/build.sh", "hack/fuzz.sh", "hack/limits/limits.sh"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(root, name), stub, 0o700))
	}
	for _, name := range []string{"hack/soak.sh", "hack/step.sh", "hack/simulation/run.sh"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(root, name), []byte(contents(t, name)), 0o700))
	}
	all := []string{"fuzz.sh", "limits.sh", "bench --strict --docs=docs/benchmarks.md"}
	for set, tc := range map[string]struct{ want, not []string }{
		"FIRST=7":  {append(all, "./hack/simulation: first 7, 2000 seeds, at least 100, seed ,  nodes.", "first 7, 2 seeds, at least 2, seed , 5000 nodes.", "chaos --first=7 --schedules=2000 --docs=docs/chaos.md:", "make soak FIRST=7 SEEDS=2000 repeats it"), nil},
		"SEEDS=50": {append(all, "50 seeds, at least 50, seed ,  nodes.", "--schedules=50 --docs", " SEEDS=50 repeats it"), nil},
		"SEED=42":  {[]string{"./hack/simulation: first ,  seeds, at least , seed 42,  nodes.", "chaos --first=42 --schedules=1:"}, append(all, "--docs")},
	} {
		command := exec.CommandContext(t.Context(), filepath.Join(root, "hack", "soak.sh"))
		command.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"), "FIRST=", "SEEDS=", "SEEDS_AT_LEAST=", "SEED=", "NODES=", set)
		output, err := command.CombinedOutput()
		must(t, err)
		for _, want := range tc.want {
			if !strings.Contains(string(output), want) {
				t.Errorf("%s: %q is missing in %s", set, want, output)
			}
		}
		for _, not := range tc.not {
			if strings.Contains(string(output), not) {
				t.Errorf("%s: %q is in %s", set, not, output)
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
