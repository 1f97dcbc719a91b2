package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		args []string
		want string
	}{
		"nothing said":   {nil, ""},
		"what make says": {[]string{"--time=1m", "--only=agent/host"}, ""},
		"no time":        {[]string{"--time=0s"}, "--time must be more than 0"},
		"no expression":  {[]string{"--only=("}, "--only: error parsing regexp: missing closing ): `(`"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o, err := parse(tc.args)
			switch {
			case tc.want != "" && (err == nil || err.Error() != tc.want):
				t.Errorf("error %v, want %s", err, tc.want)
			case tc.want == "" && (err != nil || o.time < 30*time.Second || o.only == nil):
				t.Errorf("options %+v, %v", o, err)
			}
		})
	}
}

func TestFindTargets(t *testing.T) {
	targets, err := findTargets(testenv.Root(), regexp.MustCompile(`^agent/host\.Fuzz(BootID|Logind)$`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]target{{"agent/host", "FuzzBootID"}, {"agent/host", "FuzzLogind"}}, targets, cmp.AllowUnexported(target{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := findTargets(testenv.Root(), regexp.MustCompile("nowhere")); err == nil {
		t.Error("found what is nowhere")
	}
}

// Inputs of a target that was renamed would never be run again.
func TestCorpora_BelongToTargets(t *testing.T) {
	all, err := findTargets(testenv.Root(), regexp.MustCompile(""))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, target := range all {
		known[target.corpus()] = true
	}
	for _, top := range []string{"agent", "api", "controllers", "hack", "internal"} {
		must(t, filepath.WalkDir(filepath.Join(testenv.Root(), top), func(path string, entry os.DirEntry, err error) error {
			folder, _ := filepath.Rel(testenv.Root(), filepath.Dir(path))
			if err == nil && !entry.IsDir() && strings.Contains(folder, "testdata/fuzz/") && !known[folder] {
				t.Errorf("%s is of no target", path)
			}
			return err
		}))
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLastLine(t *testing.T) {
	const output = `fuzz: elapsed: 0s, gathering baseline coverage: 0/42 completed
fuzz: elapsed: 3s, execs: 100 (33/sec), new interesting: 1 (total: 43)
fuzz: elapsed: 5s, execs: 250 (75/sec), new interesting: 4 (total: 46)
PASS
`
	if diff := cmp.Diff("250 runs; 4 of 46 inputs are new", lastLine(output)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := lastLine("PASS\n"); got != "Go has reported no result" {
		t.Errorf("made %q of nothing", got)
	}
}

func TestParseProfile_DistinguishesOnceFromOften(t *testing.T) {
	profile := func(count string) blocks { return parseProfile("mode: count\na.go:1.2,3.4 2 " + count + "\n") }
	if diff := cmp.Diff(blocks{"a.go:1.2,3.4 1": true}, profile("1")); diff != "" {
		t.Errorf("once (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(profile("4"), profile("7")); diff != "" {
		t.Errorf("4 and 7 differ:\n%s", diff)
	}
	if len(profile("0")) > 0 || cmp.Equal(profile("1"), profile("4")) {
		t.Errorf("0 is %v; 1 and 4 are the same: %v", profile("0"), profile("4"))
	}
}

func TestChoose(t *testing.T) {
	in := func(name string, size int, covers ...string) *input {
		i := &input{name: name, content: make([]byte, size), covers: blocks{}}
		for _, block := range covers {
			i.covers[block] = true
		}
		return i
	}
	many := make([]*input, 0, 2*maxInputs)
	for i := range 2 * maxInputs {
		many = append(many, in("m", 1, string(rune('A'+i))))
	}
	cases := map[string]struct {
		inputs []*input
		want   string
		count  int
	}{
		"nothing":                      {nil, "", 0},
		"nothing new":                  {[]*input{in("a", 1)}, "", 0},
		"most first, and no repeats":   {[]*input{in("a", 1, "x"), in("b", 2, "x", "y"), in("c", 3, "y")}, "b", 1},
		"the smallest of equals":       {[]*input{in("a", 1, "x"), in("b", 2, "x")}, "a", 1},
		"each that adds something":     {[]*input{in("a", 1, "x", "y"), in("b", 1, "y", "z"), in("c", 1, "z")}, "a b", 2},
		"what is too large is left":    {[]*input{in("a", maxBytes, "x", "y"), in("b", 1, "z")}, "a", 1},
		"no more than there should be": {many, strings.TrimSpace(strings.Repeat("m ", maxInputs)), maxInputs},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var names []string
			for _, chosen := range choose(tc.inputs) {
				names = append(names, chosen.name)
			}
			if got := strings.Join(names, " "); got != tc.want || len(names) != tc.count {
				t.Errorf("chose %q, want %q", got, tc.want)
			}
		})
	}
}
