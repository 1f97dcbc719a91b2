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

// An image must be an OCI layout with the program of each architecture. The tests of hack/release
// check that its bytes are reproducible.
func TestWrite_IsAnOCILayout(t *testing.T) {
	dir := t.TempDir()
	var images []Image
	for _, arch := range []string{"amd64", "arm64"} {
		program := filepath.Join(dir, arch, "agent")
		must(t, errors.Join(os.Mkdir(filepath.Dir(program), 0o700), os.WriteFile(program, []byte(arch), 0o600)))
		images = append(images, Image{Name: "example.com/agent:v1", Program: program, User: "0:0", Entrypoint: []string{"/agent"}, Arch: arch})
	}
	path := filepath.Join(dir, "image.tar")
	must(t, Write(path, images...))
	text, err := os.ReadFile(path)
	must(t, err)
	files := untar(t, text)

	if got := string(files["oci-layout"].content); got != `{"imageLayoutVersion":"1.0.0"}` {
		t.Errorf("oci-layout is %s", got)
	}
	type index struct{ Manifests []descriptor }
	var outer, inner index
	decode(t, files["index.json"].content, &outer)
	names := map[string]string{"io.containerd.image.name": images[0].Name, "org.opencontainers.image.ref.name": "v1"}
	if diff := cmp.Diff(names, outer.Manifests[0].Annotations); diff != "" {
		t.Errorf("its names (-want +got):\n%s", diff)
	}
	decode(t, blob(t, files, outer.Manifests[0]), &inner)
	got := map[string]file{}
	for _, d := range inner.Manifests {
		var manifest struct {
			Config descriptor
			Layers []descriptor
		}
		decode(t, blob(t, files, d), &manifest)
		unpacked := gunzip(t, blob(t, files, manifest.Layers[0]))
		arch := d.Platform["architecture"]
		got[arch] = untar(t, unpacked)["agent"]
		var config any
		decode(t, blob(t, files, manifest.Config), &config)
		want := map[string]any{
			"os": "linux", "architecture": arch, "config": map[string]any{"User": "0:0", "Entrypoint": []any{"/agent"}, "Labels": nil},
			"rootfs": map[string]any{"type": "layers", "diff_ids": []any{digest(unpacked)}},
		}
		if diff := cmp.Diff(want, config); diff != "" {
			t.Errorf("config (-want +got):\n%s", diff)
		}
	}
	want := map[string]file{"amd64": {[]byte("amd64"), 0o755}, "arm64": {[]byte("arm64"), 0o755}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(file{})); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
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
		t.Error("accepted a stage that runs nothing as an image")
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

// blob returns the content of a descriptor, and checks its digest and size.
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
