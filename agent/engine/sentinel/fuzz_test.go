package sentinel

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/reboot-operator/reboot-operator/agent/engine"
)

// FuzzLook: whatever the host's files hold, and however much, the file counts, and the message fits into the Node.
func FuzzLook(f *testing.F) {
	f.Add("*** System restart required ***\n", "linux-image-6.1.0-37-amd64\nlibc6\n", uint16(1))
	f.Add("", "libc6\n", uint16(3000))
	f.Add("", "a-name-without-an-end", uint16(1000))
	f.Add("\x00", "\xff\n\n", uint16(2))
	f.Fuzz(func(t *testing.T, text, packages string, times uint16) {
		root := t.TempDir()
		all := strings.Repeat(packages, min(int(times), 64<<10/max(1, len(packages))))
		for name, content := range map[string]string{"run/reboot-required": text, "run/reboot-required.pkgs": all} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		seen := look(root, Defaults)
		for _, name := range seen.packages {
			if !slices.ContainsFunc(strings.Split(all, "\n"), func(line string) bool { return strings.TrimSpace(line) == name }) {
				t.Errorf("%q was made up, or cut", name)
			}
		}
		r := seen.report()
		if r.State != engine.Needed || len(r.Message) > engine.MaxMessageBytes || !utf8.ValidString(r.Message) {
			t.Errorf("report %+v", r)
		}
	})
}
