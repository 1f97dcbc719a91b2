package rack

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Image is a container image of one static program.
type Image struct {
	// Archive is an existing archive to use as it is. If empty, the image is built from the fields
	// below.
	Archive string
	// Name is its full name, with registry and tag.
	Name string
	// Program is the program's file on this machine. In the image it is /NAME.
	Program string
	// User is uid:gid, or empty for root.
	User string
	// Entrypoint is the command to run.
	Entrypoint []string
	// Arch is the architecture of the program, or empty for this machine's.
	Arch string
	// Labels describe the origin of the image.
	Labels map[string]string
}

// Write combines the images of one or more architectures into one image with the name of the first.
// The result is a tar archive in the OCI image layout, which containerd imports:
// https://github.com/opencontainers/image-spec/blob/main/image-layout.md
//
// go-containerregistry would save some 20 of its 90 lines. It writes a layout as a folder, which
// would still have to be packed, and adds its dependencies to the operator's module. Archive is
// needed for the chart and the plugin anyway.
func Write(path string, images ...Image) error {
	var a Archive
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
	name := images[0].Name
	all := a.json(map[string]any{"schemaVersion": 2, "mediaType": index, "manifests": manifests}, index)
	all.Annotations = map[string]string{
		"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name[strings.LastIndex(name, ":")+1:],
	}
	a.Add("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`), 0o644)
	a.Add("index.json", a.encode(map[string]any{"schemaVersion": 2, "manifests": []descriptor{all}}), 0o644)
	text, err := a.end()
	if err != nil {
		return fmt.Errorf("packing image %s: %w", name, err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return fmt.Errorf("writing image %s: %w", name, err)
	}
	return nil
}

func (i Image) arch() string { return cmp.Or(i.Arch, runtime.GOARCH) }

// addTo adds the image's blobs. Its bytes depend only on the program and the fields: not on a clock
// or a folder.
func (i Image) addTo(a *Archive) (descriptor, error) {
	program, err := os.ReadFile(i.Program)
	if err != nil {
		return descriptor{}, fmt.Errorf("reading the program of image %s: %w", i.Name, err)
	}
	var files Archive
	files.Add(filepath.Base(i.Program), program, 0o755)
	packed, err := files.Pack()
	if err != nil {
		return descriptor{}, fmt.Errorf("packing image %s: %w", i.Name, err)
	}
	config := a.json(map[string]any{
		"os": "linux", "architecture": i.arch(),
		"config": map[string]any{"User": i.User, "Entrypoint": i.Entrypoint, "Labels": i.Labels},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{digest(files.text.Bytes())}},
	}, "application/vnd.oci.image.config.v1+json")
	return a.json(map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
		"layers": []descriptor{a.blob(packed, "application/vnd.oci.image.layer.v1.tar+gzip")},
	}, "application/vnd.oci.image.manifest.v1+json"), nil
}

// descriptor points to a blob of the layout.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Size        int               `json:"size"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Platform    map[string]string `json:"platform,omitempty"`
}

// Archive is a tar archive that remembers its first error. Its bytes depend only on the files: not
// on a clock or a user.
type Archive struct {
	text bytes.Buffer
	tar  *tar.Writer
	err  error
}

// Add adds a file.
func (a *Archive) Add(name string, content []byte, mode int64) {
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

// blob adds content under the name of its digest.
func (a *Archive) blob(content []byte, mediaType string) descriptor {
	d := digest(content)
	a.Add("blobs/sha256/"+d[len("sha256:"):], content, 0o644)
	return descriptor{MediaType: mediaType, Digest: d, Size: len(content)}
}

func (a *Archive) json(object any, mediaType string) descriptor {
	return a.blob(a.encode(object), mediaType)
}

func (a *Archive) encode(object any) []byte {
	text, err := json.Marshal(object)
	if a.err == nil {
		a.err = err
	}
	return text
}

func (a *Archive) end() ([]byte, error) {
	if a.err == nil {
		a.err = a.tar.Close()
	}
	return a.text.Bytes(), a.err
}

// Pack finishes the archive and compresses it.
func (a *Archive) Pack() ([]byte, error) {
	text, err := a.end()
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	_, err = zip.Write(text)
	err = errors.Join(err, zip.Close())
	return packed.Bytes(), err
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// ReadDockerfile returns the image of a Dockerfile stage that copies one program. The user and
// entrypoint are the stage's. The program is the file of that name in a folder. Files of the base
// image are left out.
func ReadDockerfile(dockerfile, stage, name, programs string) (Image, error) {
	text, err := os.ReadFile(dockerfile)
	if err != nil {
		return Image{}, fmt.Errorf("reading stage %s: %w", stage, err)
	}
	image := Image{Name: name}
	within := false
	for line := range strings.Lines(string(text)) {
		instruction, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		fields := strings.Fields(rest)
		switch {
		case instruction == "FROM":
			within = len(fields) == 3 && fields[2] == stage
		case !within:
		case instruction == "USER":
			image.User = rest
		case instruction == "COPY":
			image.Program = filepath.Join(programs, filepath.Base(fields[len(fields)-1]))
		case instruction == "ENTRYPOINT":
			if err := json.Unmarshal([]byte(rest), &image.Entrypoint); err != nil {
				return Image{}, fmt.Errorf("reading the entrypoint of stage %s: %w", stage, err)
			}
		}
	}
	if image.Program == "" || len(image.Entrypoint) == 0 {
		return Image{}, fmt.Errorf("%s has no stage %s with COPY and ENTRYPOINT", dockerfile, stage)
	}
	return image, nil
}
