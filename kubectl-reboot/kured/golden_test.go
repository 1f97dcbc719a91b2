package kured

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// fixtures are the manifests of testdata, by name.
func fixtures(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.[yj]*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no fixtures: %v", err)
	}
	byName := map[string]string{}
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		byName[name] = file
	}
	return byName
}

// convertFile converts a file.
func convertFile(t *testing.T, file string) (policy, report string) {
	t.Helper()
	manifest, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	policy, report, err = convertText(string(manifest))
	if err != nil {
		t.Fatal(err)
	}
	return policy, report
}

func TestFixtures(t *testing.T) {
	for name, file := range fixtures(t) {
		t.Run(name, func(t *testing.T) {
			policy, report := convertFile(t, file)
			golden(t, name+".policy.golden", policy)
			golden(t, name+".report.golden", report)
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}
