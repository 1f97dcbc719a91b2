package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestBootID(t *testing.T) {
	const id = "f8a5c2d1-6f0b-4c2e-9b1a-0123456789ab"
	cases := map[string]struct{ content, want, wantErr string }{
		"the kernel's file":          {id + "\n", id, ""},
		"without a line break":       {id, id, ""},
		"with white space around it": {" \t" + id + " \r\n\n", id, ""},
		"the longest":                {strings.Repeat("a", 64) + "\n", strings.Repeat("a", 64), ""},
		"an empty file":              {"", "", "it is empty"},
		"white space alone":          {" \n", "", "it is empty"},
		"too long":                   {strings.Repeat("a", 65), "", "it is longer than 64 bytes"},
		"endless":                    {strings.Repeat("a", 1<<20), "", "it is longer than 64 bytes"},
		"several lines":              {"a\nb\n", "", `"a\nb" has characters other than letters, digits and dashes`},
		"invalid characters":         {"a/b", "", `"a/b" has characters other than letters, digits and dashes`},
		"bytes that are not text":    {"\xff\x00", "", `"\xff\x00" has characters other than letters, digits and dashes`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "boot_id")
			must(t, os.WriteFile(path, []byte(tc.content), 0o600))
			got, err := BootID(path)
			if tc.wantErr == "" {
				must(t, err)
			} else if want := "reading the boot ID from \"" + path + "\": " + tc.wantErr; err == nil || err.Error() != want {
				t.Errorf("error %v, want %s", err, want)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("boot ID (-want +got):\n%s", diff)
			}
		})
	}
}

func TestBootID_OfThisMachine(t *testing.T) {
	id, err := BootID("/proc/sys/kernel/random/boot_id")
	must(t, err)
	if len(id) != 36 {
		t.Errorf("boot ID %q", id)
	}
}

func TestBootID_NamesTheFileItCannotRead(t *testing.T) {
	_, err := BootID("/does/not/exist")
	if err == nil || err.Error() != "reading the boot ID: open /does/not/exist: no such file or directory" {
		t.Errorf("error %v", err)
	}
}

func FuzzBootID(f *testing.F) {
	f.Add("f8a5c2d1-6f0b-4c2e-9b1a-0123456789ab\n")
	f.Add("")
	f.Add("\xff")
	f.Add(strings.Repeat("a", 65))
	f.Fuzz(func(t *testing.T, content string) {
		id, err := parseBootID(content)
		if err != nil {
			return
		}
		if id == "" || len(id) > 64 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" {
			t.Errorf("%q was read as %q", content, id)
		}
		if again, err := parseBootID(id); err != nil || again != id {
			t.Errorf("%q reads as %q, %v", id, again, err)
		}
	})
}

func TestUptime(t *testing.T) {
	cases := map[string]struct {
		content string
		want    time.Duration
		wantErr string
	}{
		"the kernel's file":                {"94822.25 187234.11\n", 94822*time.Second + 250*time.Millisecond, ""},
		"right after the boot":             {"0.00 0.00\n", 0, ""},
		"the longest possible duration":    {"9000000000.00 0.00\n", 9000000000 * time.Second, ""},
		"longer than the longest duration": {"9300000000.00 0.00\n", 0, `"9300000000.00" is not an uptime in seconds`},
		"without end":                      {strings.Repeat("9", 1<<20), 0, "it is not two numbers"},
		"below zero":                       {"-1.00 0.00\n", 0, `"-1.00" is not an uptime in seconds`},
		"no number":                        {"NaN 0.00\n", 0, `"NaN" is not an uptime in seconds`},
		"infinite":                         {"Inf 0.00\n", 0, `"Inf" is not an uptime in seconds`},
		"text":                             {"long ago\n", 0, `"long" is not a number`},
		"empty":                            {"", 0, "it is not two numbers"},
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
