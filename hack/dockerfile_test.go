package hack

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The images are one program: nothing runs while they are put together, and nothing else is copied.
func TestDockerfile_FinalStagesAddOneProgram(t *testing.T) {
	want := map[string][]string{
		"manager": {"FROM scratch AS manager", "COPY --from=build-manager /manager /manager", "USER 65532:65532", `ENTRYPOINT ["/manager"]`},
		"agent":   {"FROM scratch AS agent", "COPY --from=build-agent /agent /agent", "USER 0:0", `ENTRYPOINT ["/agent"]`},
	}
	got := map[string][]string{}
	for name, stage := range stages(t) {
		if !strings.HasPrefix(name, "build") {
			got[name] = stage
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The user of the manager's image is the one that its Deployment asks for, so that the one does not hold without the other.
func TestDockerfile_UsersAreThoseOfTheManifests(t *testing.T) {
	for path, uid := range map[string]string{"config/manager/deployment.yaml": "65532", "config/agent/daemonset.yaml": "0"} {
		if manifest := contents(t, path); !strings.Contains(manifest, "runAsUser: "+uid+"\n") {
			t.Errorf("%s asks for another user than %s", path, uid)
		}
	}
}

// The programs are static, and built as `make build` builds them, also for tests; hack/reproducible.sh compares their bits.
func TestDockerfile_BuildsAsTheMakefileDoes(t *testing.T) {
	dockerfile, makefile := strings.ReplaceAll(contents(t, "Dockerfile"), "\\\n", ""), contents(t, "Makefile")
	for _, flag := range []string{"CGO_ENABLED=0", "-trimpath", "-buildvcs=false", "-s -w"} {
		for where, text := range map[string]string{"the Dockerfile": dockerfile, "the Makefile": makefile, "the tests' programs": contents(t, "hack/testenv/build.go")} {
			if !strings.Contains(text, flag) {
				t.Errorf("%s: no %s", where, flag)
			}
		}
	}
	flags := regexp.MustCompile(`-X (?:\S+/)?(controllers\.Version|main\.version)=`)
	var got []string
	for _, m := range flags.FindAllStringSubmatch(dockerfile, -1) {
		got = append(got, m[1])
	}
	if diff := cmp.Diff([]string{"controllers.Version", "main.version"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// stages are the instructions of each stage, by its name; without comments.
func stages(t *testing.T) map[string][]string {
	t.Helper()
	all, current := map[string][]string{}, ""
	for line := range strings.Lines(strings.ReplaceAll(contents(t, "Dockerfile"), "\\\n", "")) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, "FROM ") {
			_, name, named := strings.Cut(line, " AS ")
			if !named {
				t.Fatalf("a stage without a name: %s", line)
			}
			current = name
		}
		all[current] = append(all[current], line)
	}
	return all
}
