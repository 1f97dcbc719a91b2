package rack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImage_IsAnOCILayout(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "agent")
	must(t, os.WriteFile(program, []byte("\x7fELF"), 0o600))
	image := Image{Name: "example.com/agent:1", Program: program, User: "0:0", Entrypoint: []string{"/agent"}}
	must(t, image.Write(filepath.Join(dir, "image.tar")))
	text, err := os.ReadFile(filepath.Join(dir, "image.tar"))
	must(t, err)
	files := untar(t, text)

	if got := string(files["oci-layout"].content); got != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout is %s", got)
	}
	var index struct{ Manifests []descriptor }
	decode(t, files["index.json"].content, &index)
	if got := index.Manifests[0].Annotations["io.containerd.image.name"]; got != image.Name {
		t.Errorf("its name is %q", got)
	}
	var manifest struct {
		Config descriptor
		Layers []descriptor
	}
	decode(t, blob(t, files, index.Manifests[0]), &manifest)
	var config struct {
		OS     string
		Config struct {
			User       string
			Entrypoint []string
		}
		RootFS struct {
			DiffIDs []string `json:"diff_ids"`
		}
	}
	decode(t, blob(t, files, manifest.Config), &config)
	if config.OS != "linux" || config.Config.User != "0:0" {
		t.Errorf("config is %+v", config)
	}
	if diff := cmp.Diff([]string{"/agent"}, config.Config.Entrypoint); diff != "" {
		t.Error(diff)
	}
	unpacked := gunzip(t, blob(t, files, manifest.Layers[0]))
	if diff := cmp.Diff([]string{digest(unpacked)}, config.RootFS.DiffIDs); diff != "" {
		t.Error(diff)
	}
	layer := untar(t, unpacked)
	if got := layer["agent"]; string(got.content) != "\x7fELF" || got.mode != 0o755 {
		t.Errorf("the layer has %+v", layer)
	}
}

// An image of several architectures has each program under its own, and the same bits whenever it is written.
func TestWriteIndex(t *testing.T) {
	dir := t.TempDir()
	var images []Image
	for _, arch := range []string{"amd64", "arm64"} {
		program := filepath.Join(dir, arch, "agent")
		must(t, errors.Join(os.Mkdir(filepath.Dir(program), 0o700), os.WriteFile(program, []byte(arch), 0o600)))
		images = append(images, Image{Name: "example.com/agent:v1", Program: program, Arch: arch})
	}
	first, second := filepath.Join(dir, "1.tar"), filepath.Join(dir, "2.tar")
	must(t, errors.Join(WriteIndex(first, images...), WriteIndex(second, images...)))
	text, err := os.ReadFile(first)
	must(t, err)
	again, err := os.ReadFile(second)
	must(t, err)
	if !bytes.Equal(text, again) {
		t.Error("the second time it has other bits")
	}
	files := untar(t, text)
	type index struct{ Manifests []descriptor }
	var outer, inner index
	decode(t, files["index.json"].content, &outer)
	if got := outer.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; got != "v1" {
		t.Errorf("its tag is %q", got)
	}
	decode(t, blob(t, files, outer.Manifests[0]), &inner)
	got := map[string]string{}
	for _, d := range inner.Manifests {
		var manifest struct{ Layers []descriptor }
		decode(t, blob(t, files, d), &manifest)
		got[d.Platform["architecture"]] = string(untar(t, gunzip(t, blob(t, files, manifest.Layers[0])))["agent"].content)
	}
	if diff := cmp.Diff(map[string]string{"amd64": "amd64", "arm64": "arm64"}, got); diff != "" {
		t.Error(diff)
	}
}

func gunzip(t *testing.T, text []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(text))
	must(t, err)
	unpacked, err := io.ReadAll(r)
	must(t, err)
	return unpacked
}

func TestImage_NeedsItsProgram(t *testing.T) {
	dir := t.TempDir()
	err := Image{Name: "it", Program: filepath.Join(dir, "missing")}.Write(filepath.Join(dir, "image.tar"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestReadDockerfile_OfThisProject(t *testing.T) {
	dockerfile := filepath.Join("..", "..", "Dockerfile")
	for stage, want := range map[string]Image{
		"manager": {Name: "it:1", Program: "/bin/manager", User: "65532:65532", Entrypoint: []string{"/manager"}},
		"agent":   {Name: "it:1", Program: "/bin/agent", User: "0:0", Entrypoint: []string{"/agent"}},
	} {
		got, err := ReadDockerfile(dockerfile, stage, "it:1", "/bin")
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("stage %s: %s", stage, diff)
		}
	}
	if _, err := ReadDockerfile(dockerfile, "build", "it:1", "/bin"); err == nil {
		t.Error("a stage that runs nothing is no image")
	}
}

type file struct {
	content []byte
	mode    int64
}

func untar(t *testing.T, text []byte) map[string]file {
	t.Helper()
	files := map[string]file{}
	for r := tar.NewReader(bytes.NewReader(text)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		content, err := io.ReadAll(r)
		must(t, err)
		files[header.Name] = file{content, header.Mode}
	}
}

// blob is what a descriptor names, held to its digest and size.
func blob(t *testing.T, files map[string]file, d descriptor) []byte {
	t.Helper()
	content := files["blobs/sha256/"+d.Digest[len("sha256:"):]].content
	if digest(content) != d.Digest || len(content) != d.Size {
		t.Errorf("%s of %d bytes is %s of %d", d.Digest, d.Size, digest(content), len(content))
	}
	return content
}

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	must(t, json.Unmarshal(text, into))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
