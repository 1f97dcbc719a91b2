package rack

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Image is a container image of one static program.
type Image struct {
	// Archive is one that exists, which is taken as it is. Empty: it is made of the fields below.
	Archive string
	// Name is its full name, with registry and tag.
	Name string
	// Program is the program's file on this machine. In the image it is /NAME.
	Program string
	// User is uid:gid. Empty: root.
	User string
	// Entrypoint is what runs.
	Entrypoint []string
	// Arch is what the program was built for. Empty: this machine's.
	Arch string
	// Labels name where it is from.
	Labels map[string]string
}

// Write writes it as a tar archive of the OCI image layout, which containerd imports:
// https://github.com/opencontainers/image-spec/blob/main/image-layout.md
func (i Image) Write(path string) error {
	var a archive
	manifest, err := i.addTo(&a)
	if err != nil {
		return err
	}
	return i.finish(&a, manifest, path)
}

// WriteIndex writes the images of several architectures as one, with the name of the first.
func WriteIndex(path string, images ...Image) error {
	var a archive
	manifests := make([]descriptor, 0, len(images))
	for _, image := range images {
		manifest, err := image.addTo(&a)
		if err != nil {
			return err
		}
		manifest.Platform = map[string]string{"os": "linux", "architecture": image.arch()}
		manifests = append(manifests, manifest)
	}
	const index = "application/vnd.oci.image.index.v1+json"
	return images[0].finish(&a, a.json(map[string]any{"schemaVersion": 2, "mediaType": index, "manifests": manifests}, index), path)
}

func (i Image) arch() string { return cmp.Or(i.Arch, runtime.GOARCH) }

// addTo adds everything of the image but what makes it the archive's. The bits are the program's and these fields': no clock,
// no folder.
func (i Image) addTo(a *archive) (descriptor, error) {
	layer, err := i.layer()
	if err != nil {
		return descriptor{}, err
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	if _, err := zip.Write(layer); err != nil {
		return descriptor{}, fmt.Errorf("packing image %s: %w", i.Name, err)
	}
	if err := zip.Close(); err != nil {
		return descriptor{}, fmt.Errorf("packing image %s: %w", i.Name, err)
	}
	config := a.json(map[string]any{
		"os": "linux", "architecture": i.arch(),
		"config": map[string]any{"User": i.User, "Entrypoint": i.Entrypoint, "Labels": i.Labels},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(layer)}},
	}, "application/vnd.oci.image.config.v1+json")
	return a.json(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
		"layers": []descriptor{a.blob(packed.Bytes(), "application/vnd.oci.image.layer.v1.tar+gzip")},
	}, "application/vnd.oci.image.manifest.v1+json"), nil
}

// finish makes it the archive's, under the image's name.
func (i Image) finish(a *archive, manifest descriptor, path string) error {
	manifest.Annotations = map[string]string{
		"io.containerd.image.name": i.Name, "org.opencontainers.image.ref.name": i.Name[strings.LastIndex(i.Name, ":")+1:],
	}
	a.add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644)
	a.add("index.json", a.encode(map[string]any{"schemaVersion": 2, "manifests": []descriptor{manifest}}), 0o644)
	text, err := a.end()
	if err != nil {
		return fmt.Errorf("packing image %s: %w", i.Name, err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("writing image %s: %w", i.Name, err)
	}
	return nil
}

func (i Image) layer() ([]byte, error) {
	program, err := os.ReadFile(i.Program)
	if err != nil {
		return nil, fmt.Errorf("reading the program of image %s: %w", i.Name, err)
	}
	var a archive
	a.add(filepath.Base(i.Program), program, 0o755)
	return a.end()
}

// descriptor reports where something is in the layout.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    map[string]string `json:"platform,omitempty"`
}

// archive is a tar archive that remembers its first failure.
type archive struct {
	text bytes.Buffer
	tar  *tar.Writer
	err  error
}

func (a *archive) add(name string, content []byte, mode int64) {
	if a.tar == nil {
		a.tar = tar.NewWriter(&a.text)
	}
	if a.err == nil {
		a.err = a.tar.WriteHeader(&tar.Header{Name: name, Size: int64(len(content)), Mode: mode, Typeflag: tar.TypeReg})
	}
	if a.err == nil {
		_, a.err = io.Copy(a.tar, bytes.NewReader(content))
	}
}

// blob adds something under the name of its digest.
func (a *archive) blob(content []byte, mediaType string) descriptor {
	d := digest(content)
	a.add("blobs/sha256/"+d[len("sha256:"):], content, 0o644)
	return descriptor{MediaType: mediaType, Digest: d, Size: len(content)}
}

func (a *archive) json(object any, mediaType string) descriptor {
	return a.blob(a.encode(object), mediaType)
}

func (a *archive) encode(object any) []byte {
	text, err := json.Marshal(object)
	if a.err == nil {
		a.err = err
	}
	return text
}

func (a *archive) end() ([]byte, error) {
	if a.err == nil {
		a.err = a.tar.Close()
	}
	return a.text.Bytes(), a.err
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
