package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestUptime(t *testing.T) {
	cases := map[string]struct {
		content string
		want    time.Duration
		wantErr string
	}{
		"the kernel's file":         {"94822.25 187234.11\n", 94822*time.Second + 250*time.Millisecond, ""},
		"right after the boot":      {"0.00 0.00\n", 0, ""},
		"as long as a duration is":  {"9000000000.00 0.00\n", 9000000000 * time.Second, ""},
		"longer than a duration is": {"9300000000.00 0.00\n", 0, `"9300000000.00" seconds are no uptime`},
		"without end":               {strings.Repeat("9", 1<<20), 0, "it is not two numbers"},
		"below zero":                {"-1.00 0.00\n", 0, `"-1.00" seconds are no uptime`},
		"no number":                 {"NaN 0.00\n", 0, `"NaN" seconds are no uptime`},
		"infinite":                  {"Inf 0.00\n", 0, `"Inf" seconds are no uptime`},
		"a word":                    {"long ago\n", 0, `"long" is no number`},
		"empty":                     {"", 0, "it is not two numbers"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "uptime")
			must(t, os.WriteFile(path, []byte(tc.content), 0o600))
			got, err := Uptime(path)
			if tc.wantErr == "" {
				must(t, err)
			} else if want := "reading the uptime from \"" + path + "\": " + tc.wantErr; err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
			if got != tc.want {
				t.Errorf("uptime %s, want %s", got, tc.want)
			}
		})
	}
}

func TestUptime_OfThisMachine(t *testing.T) {
	first, err := Uptime("/proc/uptime")
	must(t, err)
	second, err := Uptime("/proc/uptime")
	must(t, err)
	if first <= 0 || second < first {
		t.Errorf("uptime %s, then %s", first, second)
	}
}

func TestUptime_NamesTheFileItCannotRead(t *testing.T) {
	if got, err := Uptime("/does/not/exist"); got != 0 || err == nil || err.Error() != "reading the uptime: open /does/not/exist: no such file or directory" {
		t.Errorf("%s, %v", got, err)
	}
}
