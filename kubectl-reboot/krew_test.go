package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// plugin holds what krew reads from a manifest.
type plugin struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   map[string]string `json:"metadata"`
	Spec       struct {
		Version          string `json:"version"`
		Homepage         string `json:"homepage"`
		ShortDescription string `json:"shortDescription"`
		Description      string `json:"description"`
		Caveats          string `json:"caveats"`
		Platforms        []struct {
			Selector struct {
				MatchLabels map[string]string `json:"matchLabels"`
			} `json:"selector"`
			URI    string `json:"uri"`
			SHA256 string `json:"sha256"`
			Bin    string `json:"bin"`
		} `json:"platforms"`
	} `json:"spec"`
}

// fill fills in the manifest as krew-release-bot does, with an invented checksum.
func fill(t *testing.T, tag string) plugin {
	t.Helper()
	text, err := os.ReadFile("krew.yaml")
	if err != nil {
		t.Fatal(err)
	}
	release := struct{ TagName string }{tag}
	filled, err := template.New("krew").Funcs(template.FuncMap{
		"addURIAndSha": func(url, tag string) string {
			return fmt.Sprintf("uri: %s\n    sha256: %s", strings.ReplaceAll(url, "{{ .TagName }}", tag), strings.Repeat("c0de", 16))
		},
	}).Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	var manifest strings.Builder
	if err := filled.Execute(&manifest, release); err != nil {
		t.Fatal(err)
	}
	var p plugin
	if err := yaml.UnmarshalStrict([]byte(manifest.String()), &p); err != nil {
		t.Fatalf("%v in\n%s", err, manifest.String())
	}
	return p
}

// TestKrew tests that krew can read the manifest, and that each platform has its own archive.
func TestKrew(t *testing.T) {
	p := fill(t, "v1.2.3")
	got := []any{p.APIVersion, p.Kind, p.Metadata, p.Spec.Version}
	want := []any{"krew.googlecontainertools.github.com/v1alpha2", "Plugin", map[string]string{"name": "reboot"}, "v1.2.3"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(p.Spec.ShortDescription); n == 0 || n > 50 {
		t.Errorf("the short description has %d characters; krew wants up to 50", n)
	}
	var platforms []string
	for _, platform := range p.Spec.Platforms {
		os, arch := platform.Selector.MatchLabels["os"], platform.Selector.MatchLabels["arch"]
		platforms = append(platforms, os+"/"+arch)
		name := fmt.Sprintf("/v1.2.3/kubectl-reboot_%s_%s.tar.gz", os, arch)
		if !strings.HasSuffix(platform.URI, name) || !regexp.MustCompile("^[0-9a-f]{64}$").MatchString(platform.SHA256) {
			t.Errorf("%s/%s has %s with checksum %s", os, arch, platform.URI, platform.SHA256)
		}
		if exe := strings.HasSuffix(platform.Bin, ".exe"); exe != (os == "windows") || strings.TrimSuffix(platform.Bin, ".exe") != "kubectl-reboot" {
			t.Errorf("%s/%s runs %s", os, arch, platform.Bin)
		}
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64"}, platforms); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
