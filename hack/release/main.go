// Program release packs what hack/release.sh has built: images, archives of the plugin, the
// manifest for krew, the chart. The bits follow from the programs and the checkout: no clock, no
// folder, no user.
//
// `helm package` writes the times of the checkout's files into the chart. ko and goreleaser build
// the programs again, with other flags, and neither packs the chart. Bills of materials are
// cyclonedx-gomod's.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/reboot-operator/reboot-operator/hack/rack"
)

func main() {
	version := flag.String("version", "", "The tag of the release.")
	programs := flag.String("programs", "", "Folder with a folder of programs for each platform, such as linux_amd64.")
	out := flag.String("out", "", "Folder for what is published.")
	flag.Parse()
	r := release{version: *version, root: ".", programs: *programs, out: *out}
	if err := r.pack(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release says what to pack, from where and to where.
type release struct {
	version, root, programs, out string
}

func (r release) pack() error {
	for _, name := range []string{"manager", "agent"} {
		if err := r.image(name); err != nil {
			return err
		}
	}
	if err := r.chart(); err != nil {
		return err
	}
	return r.plugin()
}

// image builds an image of a program for both architectures, with the user and the entrypoint of
// the Dockerfile.
func (r release) image(name string) error {
	var images []rack.Image
	for _, arch := range []string{"amd64", "arm64"} {
		image, err := rack.ReadDockerfile(filepath.Join(r.root, "Dockerfile"), name, "ghcr.io/reboot-operator/"+name+":"+r.version, filepath.Join(r.programs, "linux_"+arch))
		if err != nil {
			return err
		}
		image.Arch = arch
		image.Labels = map[string]string{
			"org.opencontainers.image.source":   "https://github.com/reboot-operator/reboot-operator",
			"org.opencontainers.image.version":  r.version,
			"org.opencontainers.image.licenses": "Apache-2.0",
		}
		images = append(images, image)
	}
	return rack.Write(filepath.Join(r.out, name+".oci.tar"), images...)
}

// chart packs config/chart like `helm package`, with the release's versions in Chart.yaml.
func (r release) chart() error {
	number := strings.TrimPrefix(r.version, "v")
	folder := filepath.Join(r.root, "config", "chart")
	var packed rack.Archive
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		inner, err := filepath.Rel(folder, name)
		if inner == "Chart.yaml" {
			text = bytes.Replace(text, []byte("\nversion: 0.0.0\n"), []byte("\nversion: "+number+"\n"), 1)
			text = bytes.Replace(text, []byte("\nappVersion: unreleased\n"), []byte("\nappVersion: "+r.version+"\n"), 1)
		}
		packed.Add(path.Join("reboot-operator", filepath.ToSlash(inner)), text, 0o644)
		return err
	})
	if err != nil {
		return fmt.Errorf("reading the chart: %w", err)
	}
	_, err = r.write("reboot-operator-"+number+".tgz", &packed)
	return err
}

// plugin builds an archive of the plugin for each platform in krew.yaml, and completes krew.yaml.
func (r release) plugin() error {
	license, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	source, err := os.ReadFile(filepath.Join(r.root, "kubectl-reboot", "krew.yaml"))
	if err != nil {
		return err
	}
	krew, err := template.New("krew").Funcs(template.FuncMap{"addURIAndSha": func(url, tag string) (string, error) {
		url = strings.ReplaceAll(url, "{{ .TagName }}", tag)
		sum, err := r.pluginArchive(path.Base(url), license)
		return fmt.Sprintf("uri: %s\n    sha256: %s", url, sum), err
	}}).Parse(string(source))
	if err != nil {
		return fmt.Errorf("reading krew.yaml: %w", err)
	}
	var manifest bytes.Buffer
	if err := krew.Execute(&manifest, struct{ TagName string }{r.version}); err != nil {
		return fmt.Errorf("filling krew.yaml in: %w", err)
	}
	return os.WriteFile(filepath.Join(r.out, "reboot.yaml"), manifest.Bytes(), 0o600)
}

// pluginArchive builds kubectl-reboot_OS_ARCH.tar.gz, and returns its checksum.
func (r release) pluginArchive(name string, license []byte) (string, error) {
	platform := strings.TrimSuffix(strings.TrimPrefix(name, "kubectl-reboot_"), ".tar.gz")
	program := "kubectl-reboot"
	if strings.HasPrefix(platform, "windows_") {
		program += ".exe"
	}
	text, err := os.ReadFile(filepath.Join(r.programs, platform, program))
	if err != nil {
		return "", err
	}
	var packed rack.Archive
	packed.Add(program, text, 0o755)
	packed.Add("LICENSE", license, 0o644)
	return r.write(name, &packed)
}

// write writes a compressed archive, and returns its checksum.
func (r release) write(name string, archive *rack.Archive) (string, error) {
	packed, err := archive.Pack()
	if err := errors.Join(err, os.WriteFile(filepath.Join(r.out, name), packed, 0o600)); err != nil {
		return "", fmt.Errorf("packing %s: %w", name, err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(packed)), nil
}
