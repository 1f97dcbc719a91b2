package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A release only depends on the programs and the checkout: a second one must be identical.
func TestRelease(t *testing.T) {
	programs := t.TempDir()
	for platform, names := range map[string][]string{
		"linux_amd64": {"manager", "agent", "kubectl-reboot"}, "linux_arm64": {"manager", "agent", "kubectl-reboot"},
		"darwin_amd64": {"kubectl-reboot"}, "darwin_arm64": {"kubectl-reboot"}, "windows_amd64": {"kubectl-reboot.exe"},
	} {
		for _, name := range names {
			path := filepath.Join(programs, platform, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(platform+" "+name), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
	}
	published := func() map[string][]byte {
		r := release{version: "v1.2.3", root: filepath.Join("..", ".."), programs: programs, out: t.TempDir()}
		if err := r.pack(); err != nil {
			t.Fatal(err)
		}
		files := map[string][]byte{}
		paths, err := filepath.Glob(filepath.Join(r.out, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if files[filepath.Base(path)], err = os.ReadFile(path); err != nil {
				t.Fatal(err)
			}
		}
		return files
	}
	files := published()
	for name, again := range published() {
		if !bytes.Equal(files[name], again) {
			t.Errorf("%s has other bits the second time", name)
		}
	}

	for _, image := range []string{"manager.oci.tar", "agent.oci.tar"} {
		if found, err := scan(t, files[image]); err != nil || strings.Count(found, "\n") != 2 {
			t.Errorf("%s: %v, want one program for each architecture:\n%s", image, err, found)
		}
	}

	chart := unpack(t, files["reboot-operator-1.2.3.tgz"])
	for _, line := range []string{"version: 1.2.3", "appVersion: v1.2.3"} {
		if !strings.Contains(chart["reboot-operator/Chart.yaml"], "\n"+line+"\n") {
			t.Errorf("Chart.yaml has no line %q", line)
		}
	}
	for _, name := range []string{"values.yaml", "values.schema.json", "templates/operator.yaml", "crds/rebootpolicies.yaml", "files/common.yaml"} {
		if chart["reboot-operator/"+name] == "" {
			t.Errorf("the chart has no %s", name)
		}
	}

	krew := string(files["reboot.yaml"])
	for platform, program := range map[string]string{
		"linux_amd64": "kubectl-reboot", "linux_arm64": "kubectl-reboot", "darwin_amd64": "kubectl-reboot", "darwin_arm64": "kubectl-reboot", "windows_amd64": "kubectl-reboot.exe",
	} {
		name := "kubectl-reboot_" + platform + ".tar.gz"
		inside := unpack(t, files[name])
		if inside[program] != platform+" "+program || inside["LICENSE"] == "" || len(inside) != 2 {
			t.Errorf("%s has %v", name, slices.Collect(maps.Keys(inside)))
		}
		want := fmt.Sprintf("uri: https://github.com/reboot-operator/reboot-operator/releases/download/v1.2.3/%s\n    sha256: %x\n", name, sha256.Sum256(files[name]))
		if !strings.Contains(krew, want) {
			t.Errorf("reboot.yaml does not contain\n%sbut\n%s", want, krew)
		}
	}
	if diff := cmp.Diff(9, len(files)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func unpack(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(zip); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.ModTime.Unix() != 0 || header.Uid != 0 || header.Uname != "" {
			t.Errorf("%s shows when and by whom: %+v", header.Name, header)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(text)
	}
}

// scan runs hack/scan.sh on one image.
func scan(t *testing.T, image []byte) (string, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(path, image, 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := exec.CommandContext(t.Context(), filepath.Join("..", "scan.sh"), path).CombinedOutput()
	return string(found), err
}

func tape(t *testing.T, content []byte, files ...tar.Header) []byte {
	t.Helper()
	var text bytes.Buffer
	w := tar.NewWriter(&text)
	for _, file := range files {
		file.Size = int64(len(content))
		err := w.WriteHeader(&file)
		_, written := w.Write(content)
		if err := errors.Join(err, written); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// Images that cannot be read must not pass the scan.
func TestScan_TakesOneProgramAndNothingElse(t *testing.T) {
	program, layer := tar.Header{Name: "manager", Mode: 0o755}, tar.Header{Name: "blobs/sha256/a"}
	capable := tar.Header{Name: "manager", Mode: 0o755, PAXRecords: map[string]string{"SCHILY.xattr.security.capability": "x"}}
	cases := map[string]struct {
		image []byte
		ok    bool
	}{
		"one program":                 {tape(t, tape(t, nil, program), layer), true},
		"two layers":                  {tape(t, tape(t, nil, program), layer, tar.Header{Name: "blobs/sha256/b"}), true},
		"a setuid program":            {tape(t, tape(t, nil, tar.Header{Name: "manager", Mode: 0o4755}), layer), false},
		"file capabilities":           {tape(t, tape(t, nil, capable), layer), false},
		"writable by all users":       {tape(t, tape(t, nil, tar.Header{Name: "manager", Mode: 0o777}), layer), false},
		"a shell next to the program": {tape(t, tape(t, nil, program, tar.Header{Name: "bin/sh", Mode: 0o755}), layer), false},
		"a link to a shell":           {tape(t, tape(t, nil, tar.Header{Name: "bin/sh", Linkname: "/manager", Typeflag: tar.TypeSymlink, Mode: 0o777}), layer), false},
		"another program":             {tape(t, tape(t, nil, tar.Header{Name: "busybox", Mode: 0o755}), layer), false},
		"an empty layer":              {tape(t, tape(t, nil), layer), false},
		"no layer":                    {tape(t, []byte("{}"), tar.Header{Name: "index.json"}), false},
		"a layer that is cut off":     {tape(t, tape(t, nil, program)[:100], layer), false},
		"an archive that is cut off":  {tape(t, tape(t, nil, program), layer)[:700], false},
		"no archive":                  {[]byte("x"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if found, err := scan(t, tc.image); (err == nil) != tc.ok {
				t.Errorf("%v:\n%s", err, found)
			}
		})
	}
}
