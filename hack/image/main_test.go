package main

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// image is an archive with one layer, which holds one file.
func image(t *testing.T, mode int64) []byte {
	t.Helper()
	return archive(t, tar.Header{Name: "layer"}, archive(t, tar.Header{Name: "p", Mode: mode}, nil))
}

func archive(t *testing.T, file tar.Header, content []byte) []byte {
	t.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	file.Size = int64(len(content))
	if err := w.WriteHeader(&file); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// TestAssemble: the images of this repository are one program each, and a Dockerfile that cannot be followed is reported.
func TestAssemble(t *testing.T) {
	folder := t.TempDir()
	for _, program := range []string{"manager", "agent"} {
		if err := os.WriteFile(filepath.Join(folder, program), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dockerfile := filepath.Join(testenv.Root(), "Dockerfile")
	for name, tc := range map[string]struct {
		dockerfile, programs string
		status               int
		output               []string
	}{
		"one program each": {dockerfile, folder, 0, []string{"manager.tar: 1 layers, 1 files, 0 findings", "agent.tar: 1 layers, 1 files, 0 findings"}},
		"not built":        {dockerfile, t.TempDir(), 1, []string{"no such file"}},
		"no Dockerfile":    {filepath.Join(folder, "none"), folder, 1, []string{"no such file"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			status := assemble(tc.dockerfile, tc.programs, &out)
			for _, output := range tc.output {
				if status != tc.status || !strings.Contains(out.String(), output) {
					t.Errorf("status %d: %s", status, out.String())
				}
			}
		})
	}
}

func TestRun(t *testing.T) {
	folder := t.TempDir()
	write := func(name string, mode int64) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, image(t, mode), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	clean, dirty := write("clean.tar", 0o755), write("dirty.tar", 0o4755)
	for name, tc := range map[string]struct {
		paths  []string
		status int
		output string
	}{
		"nothing":      {nil, 3, "NOT SCANNED"},
		"clean":        {[]string{clean}, 0, "clean.tar: 1 layers, 1 files, 0 findings"},
		"one is dirty": {[]string{dirty, clean}, 1, "/p: setuid"},
		"missing":      {[]string{filepath.Join(folder, "none")}, 1, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if status := run(tc.paths, &out); status != tc.status || !strings.Contains(out.String(), tc.output) {
				t.Errorf("status %d: %s", status, out.String())
			}
		})
	}
}
