package kured

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var guide = filepath.Join(testenv.Root(), "docs", "migrate.md")

// The policy of the guide that behaves as kured does is the program's own.
func TestGuide_HasThePolicyOfTheDefaults(t *testing.T) {
	blocks, err := document.Blocks(guide)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/default.policy.golden")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if b.Heading == "kured" && b.Language == "yaml" {
			if diff := cmp.Diff(string(want), b.Text); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			return
		}
	}
	t.Error("section kured has no policy")
}

// The guide has a row for each flag, with its default, and for no other.
func TestGuide_HasEveryFlag(t *testing.T) {
	want := map[string]string{}
	newKuredFlags().set.VisitAll(func(f *pflag.Flag) { want[f.Name] = strings.Trim(f.DefValue, "[]") })
	rows, err := document.Table(guide, "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, cells := range rows {
		name := strings.Trim(cells[0], "`")
		if _, isKureds := want[strings.TrimPrefix(name, "--")]; len(cells) != 3 || !isKureds && !strings.HasPrefix(name, "--") {
			continue
		}
		got[strings.TrimPrefix(name, "--")] = strings.Trim(cells[1], "`")
		if cells[2] == "" {
			t.Errorf("nothing is reported of %s", name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
