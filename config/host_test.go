package config_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNeedsRestarting runs the service's command with a dnf that answers like dnf 4 and 5. The file
// of engine sentinel must follow the answer, and an error must change nothing.
func TestNeedsRestarting_KeepsTheSentinelInStepWithDNF(t *testing.T) {
	unit, err := os.ReadFile(filepath.Join("host", "needs-restarting.service"))
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^ExecStart=/bin/sh -c '(.*)'$`).FindStringSubmatch(string(unit))
	if command == nil {
		t.Fatal("the service has no command")
	}
	const needed = "Core libraries or services have been updated since boot-up:\n  * glibc\n  * kernel\n\nReboot is required to fully utilize these updates.\n"
	run, bin := t.TempDir(), t.TempDir()
	script := strings.NewReplacer("$$", "$", "/run/", run+"/").Replace(command[1])
	for _, step := range []struct {
		what, output string
		code         string
		fails        bool
		// pkgs is the expected list, or nil if neither the file nor the list should exist.
		pkgs []string
	}{
		{"nothing is needed", "No core libraries or services have been updated since boot-up.\nReboot should not be necessary.\n", "0", false, nil},
		{"an error is not a need", "Error: Failed to download metadata\n", "1", true, nil},
		{"a need", needed, "1", false, []string{"glibc", "kernel"}},
		{"the same need", needed, "1", false, []string{"glibc", "kernel"}},
		{"an error withdraws nothing", "", "1", true, []string{"glibc", "kernel"}},
		{"the need is over", "Reboot should not be necessary.\n", "0", false, nil},
	} {
		dnf := "#!/bin/sh\n[ \"$*\" = \"needs-restarting --reboothint\" ] || exit 3\ncat <<'END'\n" + step.output + "END\nexit " + step.code + "\n"
		if err := os.WriteFile(filepath.Join(bin, "dnf"), []byte(dnf), 0o700); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Stat(filepath.Join(run, "reboot-required.pkgs"))
		cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", script)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		if err := cmd.Run(); (err != nil) != step.fails {
			t.Errorf("%s: %v", step.what, err)
		}
		_, missing := os.Stat(filepath.Join(run, "reboot-required"))
		list, _ := os.ReadFile(filepath.Join(run, "reboot-required.pkgs"))
		if (missing == nil) != (step.pkgs != nil) || strings.Join(strings.Fields(string(list)), " ") != strings.Join(step.pkgs, " ") {
			t.Errorf("%s: the file is missing: %v; the list: %q", step.what, missing, list)
		}
		if after, _ := os.Stat(filepath.Join(run, "reboot-required.pkgs")); step.output == needed && os.SameFile(before, after) {
			t.Errorf("%s: the list was emptied and written again, which the agent detects as two changes", step.what)
		}
	}
}
