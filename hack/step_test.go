package hack

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestStep_NamesSkippedStepsAtTheEnd tests the lines that hack/e2e/run.sh and testenv.NotShown
// write.
func TestStep_NamesSkippedStepsAtTheEnd(t *testing.T) {
	for name, tc := range map[string]struct{ script, want string }{
		"every step ran":                        {"step one true; finish", "All passed after N s."},
		"one step was skipped":                  {`step one sh -c 'echo "real nodes: no root" >>"$NOT_SHOWN"'; finish`, "Passed after N s; NOT SHOWN:\n  real nodes: no root"},
		"the same step was skipped in two runs": {`for i in 1 2; do bash -c '. ./step.sh; echo "real nodes: no root" >>"$NOT_SHOWN"'; done; finish`, "Passed after N s; NOT SHOWN:\n  real nodes: no root"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			command := exec.CommandContext(t.Context(), "bash", "-euc", ". ./step.sh; "+tc.script)
			command.Env = append(os.Environ(), "NOT_SHOWN=", "TMPDIR="+folder)
			output, err := command.CombinedOutput()
			got := regexp.MustCompile(`after \d+ s`).ReplaceAllString(string(output), "after N s")
			if err != nil || !strings.HasSuffix(got, "\n"+tc.want+"\n") {
				t.Errorf("%v, got %q, want the end %q", err, got, tc.want)
			}
			if remaining, _ := filepath.Glob(filepath.Join(folder, "*")); len(remaining) > 0 {
				t.Errorf("left behind: %v", remaining)
			}
		})
	}
}

func TestParallel_FailsIfOneCommandDoes(t *testing.T) {
	for commands, want := range map[string]string{`"true" "true"`: "went on", `"false" "true"`: "", `"true" "false"`: ""} {
		command := exec.CommandContext(t.Context(), "bash", "-euc", ". ./step.sh; parallel "+commands+"; printf 'went on'")
		command.Env = append(os.Environ(), "NOT_SHOWN="+filepath.Join(t.TempDir(), "not_shown"))
		if output, err := command.Output(); string(output) != want || (err == nil) != (want != "") {
			t.Errorf("parallel %s: %v, %q, want %q", commands, err, output, want)
		}
	}
}
