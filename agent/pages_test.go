package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCleanMappings(t *testing.T) {
	const text = "00400000-0180d000 r-xp 00000000 fe:00 123 /agent\nRss: 100 kB\n"
	for name, tc := range map[string]struct {
		smaps string
		want  []mapping
	}{
		"text that nothing was written to":      {text + "Anonymous:  0 kB\n", []mapping{{0x400000, 0x180d000}}},
		"relocated: releasing it would lose it": {text + "Anonymous: 64 kB\n", nil},
		"another file":                          {strings.Replace(text, "/agent", "/lib/libc.so", 1) + "Anonymous: 0 kB\n", nil},
		"writable data":                         {strings.Replace(text, "r-xp", "rw-p", 1) + "Anonymous: 0 kB\n", nil},
		"a heap has no path":                    {"c000000000-c000400000 rw-p 00000000 00:00 0\nAnonymous: 0 kB\n", nil},
		"addresses that are none":               {strings.Replace(text, "00400000", "xyz", 1) + "Anonymous: 0 kB\n", nil},
		"nothing":                               {"", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := cleanMappings(strings.NewReader(tc.smaps), "/agent")
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(mapping{})); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// A program that has given its own text back goes on.
func TestReleaseProgram(t *testing.T) {
	if err := releaseProgram(); err != nil {
		t.Fatal(err)
	}
}
