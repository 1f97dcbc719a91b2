package updatestatus

import (
	"strings"
	"testing"
)

func FuzzVersion(f *testing.F) {
	for _, text := range []string{"", "0.0.0.0", "4116.0.0+nightly-20241018-2100", "1. Reported in boot", "1.", strings.Repeat("9", 65), "1\n", "\xff", "1\u00a0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		version, err := Version(text)
		if err != nil && version != "" {
			t.Errorf("%q is %q, although %v", text, version, err)
		}
		readsAsItself(t, version)
	})
}

// readsAsItself checks that a version is short, of one printable word, and stays what it is.
func readsAsItself(t *testing.T, version string) {
	t.Helper()
	again, err := Version(version)
	odd := func(r rune) bool { return r <= ' ' || r > '~' }
	if err != nil || again != version || len(version) > 64 || strings.ContainsFunc(version, odd) {
		t.Errorf("version %q reads as %q, %v", version, again, err)
	}
}
