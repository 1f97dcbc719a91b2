package config_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// hostPath matches hostPath volumes as written in the manifests, on one line, and in the chart's
// files.
var hostPath = regexp.MustCompile(`hostPath:(?: \{|\n\s+)path: ([^\s,}]+)(?:(?:, |\n\s+)type: (\w+))?`)

// TestHostPaths_CreateNothingOnAHost tests that an installation does not change a host. If /etc is
// read-only, a pod that needs to create something there never starts. Without a type, the container
// runtime creates missing paths.
func TestHostPaths_CreateNothingOnAHost(t *testing.T) {
	found := 0
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" || strings.HasPrefix(path, "crd"+string(filepath.Separator)) {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		volumes := hostPath.FindAllStringSubmatch(string(content), -1)
		if n := strings.Count(string(content), "hostPath:"); n != len(volumes) {
			t.Errorf("%s: %d of its %d hostPath volumes are written in another way", path, n-len(volumes), n)
		}
		for _, volume := range volumes {
			found++
			if volume[2] == "" || strings.HasSuffix(volume[2], "OrCreate") {
				t.Errorf("%s: %s of type %q is created if a host does not have it", path, volume[1], volume[2])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 6 {
		t.Errorf("only %d hostPath volumes were found", found)
	}
}
