package sentinel

import (
	"os"
	"path/filepath"
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
		for name, content := range map[string]string{file: text, list: strings.Repeat(packages, int(times)%4096)[:min(len(packages)*(int(times)%4096), 64<<10)]} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		seen := look(root)
		for _, name := range seen.packages {
			if !strings.Contains(packages+packages, name) {
				t.Errorf("%q was made up, or cut", name)
			}
		}
		r := seen.report()
		if r.State != engine.Needed || len(r.Message) > engine.MaxMessageBytes || !utf8.ValidString(r.Message) {
			t.Errorf("report %+v", r)
		}
	})
}
