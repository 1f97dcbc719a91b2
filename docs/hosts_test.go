package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/agent/engine/bootc"
	"github.com/reboot-operator/reboot-operator/agent/engine/cosupdateengine"
	"github.com/reboot-operator/reboot-operator/agent/engine/kernel"
	"github.com/reboot-operator/reboot-operator/agent/engine/rpmostree"
	"github.com/reboot-operator/reboot-operator/agent/engine/sentinel"
	"github.com/reboot-operator/reboot-operator/agent/engine/updateengine"
	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// TestHosts_HasEveryEngine checks that the table of docs/hosts.md has every engine and no other, and
// that a test of the agent follows each of its sections.
func TestHosts_HasEveryEngine(t *testing.T) {
	rows, err := document.Table(filepath.Join(testenv.Root(), "docs", "hosts.md"), "Hosts")
	if err != nil {
		t.Fatal(err)
	}
	walks := tests(t, "agent")
	var got []string
	for _, row := range rows {
		for _, name := range inCode.FindAllStringSubmatch(row[4], -1) {
			got = append(got, name[1])
		}
		anchor := link.FindStringSubmatch(row[0])
		if anchor == nil {
			continue // a host with its own operator
		}
		for _, m := range headline.FindAllStringSubmatch(read(t, "docs/hosts.md"), -1) {
			if anchorOf(m[1]) == anchor[2] && !strings.Contains(walks, `Entry(nil, "`+m[1]+`", `) {
				t.Errorf("no test of the agent follows section %q", m[1])
			}
		}
	}
	slices.Sort(got)
	want := []string{updateengine.Name, cosupdateengine.Name, rpmostree.Name, bootc.Name, sentinel.Name, kernel.Name}
	slices.Sort(want)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("engines (-program +docs):\n%s", diff)
	}
}

// notOurs lists names in docs/hosts.md that the agent does not know, each with the program that reads it.
var notOurs = map[string]string{
	"/etc/apt/apt.conf.d/20auto-upgrades": "unattended-upgrades",
	"/etc/dnf/vars/releasever":            "dnf",
	"/etc/systemd/system":                 "systemd",
	"org.freedesktop.sysupdate1":          "nobody: the page excludes it",
	"update-engine.service":               "systemd, which starts what the agent knows by its name on the bus",
}

var (
	hostPath = regexp.MustCompile(`/(?:boot|etc|run|usr)/[\w./-]*\w`)
	busName  = regexp.MustCompile(`\borg\.[\w.]*\w`)
	unitName = regexp.MustCompile(`[\w-]+\.(?:service|timer)\b`)
	addOn    = regexp.MustCompile(`COMPONENTS=([\w-]+)`)
)

// TestHosts_NamesEverythingTheAgentKnows checks that the agent's source or config knows each unit, path, bus
// name and component in docs/hosts.md.
func TestHosts_NamesEverythingTheAgentKnows(t *testing.T) {
	page := read(t, "docs/hosts.md")
	known := sources(t, "agent", "config/host")
	for _, names := range []*regexp.Regexp{hostPath, busName, unitName} {
		for _, name := range names.FindAllString(page, -1) {
			reason, isNot := notOurs[name]
			whole := regexp.MustCompile(regexp.QuoteMeta(strings.TrimPrefix(name, "/")) + `(?:[^\w-]|$)`)
			if found := whole.MatchString(known); found == isNot {
				t.Errorf("%s: known to the agent: %v; listed as read by %q", name, found, reason)
			}
		}
	}
	for _, m := range addOn.FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join(testenv.Root(), "config", "components", m[1])); err != nil {
			t.Error(err)
		}
	}
}

// sources returns the text of all files below folders, except tests.
func sources(t *testing.T, folders ...string) string {
	t.Helper()
	var all strings.Builder
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(testenv.Root(), folder), func(path string, entry os.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testdata":
				return filepath.SkipDir
			case entry.IsDir(), strings.HasSuffix(path, "_test.go"):
				return nil
			}
			text, err := os.ReadFile(path)
			all.WriteString(filepath.Base(path) + "\n")
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}
