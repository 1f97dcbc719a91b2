package main

import (
	"flag"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/bench/figures"
)

func TestChoose(t *testing.T) {
	all := []figures.Part{{Name: "a"}, {Name: "b"}, {Name: "c"}}
	cases := map[string]struct {
		only   string
		want   []string
		failed string
	}{
		"all":           {"", []string{"a", "b", "c"}, ""},
		"some":          {"c,a", []string{"c", "a"}, ""},
		"one not there": {"a,d", []string{}, `no part "d": there are a, b, c`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			chosen, err := choose(all, tc.only)
			if failed := err != nil; failed != (tc.failed != "") || failed && !strings.Contains(err.Error(), tc.failed) {
				t.Errorf("error %v, want %q", err, tc.failed)
			}
			if diff := cmp.Diff(tc.want, names(chosen)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The documentation is generated under the parts' names, and their flags are distinguished by them.
func TestParts_HaveNamesThatTheirFlagsBeginWith(t *testing.T) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	prefixes := map[string]bool{}
	for _, p := range parts(flags) {
		if p.Name == "" || p.About == "" || p.Run == nil || prefixes[p.Name] {
			t.Errorf("part %q has too little text, or there are two of it", p.Name)
		}
		prefixes[p.Name] = true
	}
	flags.VisitAll(func(f *flag.Flag) {
		if part, _, _ := strings.Cut(f.Name, "-"); !prefixes[part] {
			t.Errorf("--%s begins with the name of no part", f.Name)
		}
	})
}
