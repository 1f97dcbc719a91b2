package hack

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The final stage of an image must add one program, and neither run nor copy anything else.
func TestDockerfile_FinalStagesAddOneProgram(t *testing.T) {
	const want = `AS agent
COPY --from=build-agent /agent /agent
USER 0:0
ENTRYPOINT ["/agent"]

FROM scratch AS manager
COPY --from=build-manager /manager /manager
USER 65532:65532
ENTRYPOINT ["/manager"]
`
	_, got, _ := strings.Cut(contents(t, "Dockerfile"), "\nFROM scratch ")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The image of the manager must have the user that its Deployment requests.
func TestDockerfile_UsersAreThoseOfTheManifests(t *testing.T) {
	for path, uid := range map[string]string{"config/manager/deployment.yaml": "65532", "config/agent/daemonset.yaml": "0"} {
		if manifest := contents(t, path); !strings.Contains(manifest, "runAsUser: "+uid+"\n") {
			t.Errorf("%s asks for another user than %s", path, uid)
		}
	}
}

// The workflows use the Go version of go.mod. Without a toolchain line there, they would build with
// the first patch release, and the Dockerfile with the last one. The digest makes sure that the
// base image is the one that was reviewed.
func TestDockerfiles_HaveTheGoOfTheWorkflowsByDigest(t *testing.T) {
	toolchain := regexp.MustCompile(`(?m)^toolchain go(\S+)$`).FindStringSubmatch(contents(t, "go.mod"))
	if toolchain == nil {
		t.Fatal("go.mod has no toolchain")
	}
	image := regexp.MustCompile(`(?m)^FROM .*\bgolang:` + regexp.QuoteMeta(toolchain[1]) + `-bookworm@sha256:[0-9a-f]{64}( AS build)?$`)
	for _, path := range []string{"Dockerfile", ".devcontainer/Dockerfile"} {
		if !image.MatchString(contents(t, path)) {
			t.Errorf("%s does not build with Go %s, pinned by digest", path, toolchain[1])
		}
	}
}

// The programs must be static and built with the flags of `make build`, also in tests.
// hack/reproducible.sh compares the results.
func TestDockerfile_BuildsAsTheMakefileDoes(t *testing.T) {
	dockerfile, makefile := contents(t, "Dockerfile"), contents(t, "Makefile")
	sources := map[string]string{
		"the Dockerfile": dockerfile, "the Makefile": strings.ReplaceAll(makefile, " := ", "="), "the tests' programs": contents(t, "hack/testenv/build.go"),
	}
	for _, flag := range []string{"CGO_ENABLED=0", "-trimpath", "-buildvcs=false", "-s -w"} {
		for where, text := range sources {
			if !strings.Contains(text, flag) {
				t.Errorf("%s: no %s", where, flag)
			}
		}
	}
	for _, flag := range []string{"-X github.com/reboot-operator/reboot-operator/controllers.Version=", "-X main.version="} {
		if strings.Count(dockerfile, flag) != 1 || !strings.Contains(makefile, strings.Replace(flag, "github.com/reboot-operator/reboot-operator", "$(MODULE)", 1)) {
			t.Errorf("not once in the Dockerfile, or not in the Makefile: %s", flag)
		}
	}
}
