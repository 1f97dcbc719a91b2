// Package terminaltest compares output with golden files.
package terminaltest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files again")

// Golden compares lines with testdata/NAME.golden, in which escape characters are written as ␛.
func Golden(t *testing.T, name string, lines []string) {
	t.Helper()
	got := strings.ReplaceAll(strings.Join(lines, "\n")+"\n", "\x1b", "␛")
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; go test -update writes it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nIf this is right: go test -update", path, diff)
	}
}

// Fits fails if a line is wider than the terminal.
func Fits(t *testing.T, width int, lines []string) {
	t.Helper()
	for _, line := range lines {
		if n := len([]rune(line)); n > width {
			t.Errorf("%d columns in a terminal of %d: %s", n, width, line)
		}
	}
}
