package kured

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal/terminaltest"
)

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
			for kind, text := range map[string]string{"policy": policy, "report": report} {
				terminaltest.Golden(t, name+"."+kind, strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
			}
		})
	}
}
