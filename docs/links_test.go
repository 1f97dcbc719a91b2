package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var (
	link     = regexp.MustCompile(`\]\(([^)#]*)(?:#([^)]*))?\)`)
	headline = regexp.MustCompile(`(?m)^#+ (.+)$`)
	noAnchor = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// pages are the project's, by their paths in the repository.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/README.md", "config/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(testenv.Root(), pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("there are no pages %s (%v)", pattern, err)
		}
		for _, path := range found {
			page, _ := filepath.Rel(testenv.Root(), path)
			all = append(all, page)
		}
	}
	return all
}

// repository begins the links of pages that are read outside of it, such as that of the chart.
const repository = "https://github.com/reboot-operator/reboot-operator/blob/main/"

// Every link of a page to another page, file or section leads there.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			target := page
			if path, ours := strings.CutPrefix(m[1], repository); ours {
				target = path
			} else if strings.Contains(m[1], "://") {
				continue
			} else if m[1] != "" {
				target = filepath.Join(filepath.Dir(page), m[1])
			}
			if _, err := os.Stat(filepath.Join(testenv.Root(), target)); err != nil {
				t.Errorf("%s: %v", page, err)
			} else if m[2] != "" && !anchors(t, target)[m[2]] {
				t.Errorf("%s: %s has no section %q", page, target, m[2])
			}
		}
	}
}

// anchors are the sections of a page as GitHub names them.
func anchors(t *testing.T, page string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, m := range headline.FindAllStringSubmatch(read(t, page), -1) {
		all[anchorOf(m[1])] = true
	}
	return all
}

func anchorOf(heading string) string {
	return strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(heading), ""), " ", "-")
}

// Every page is in the navigation of the site that make docs builds.
func TestSite(t *testing.T) {
	below, err := filepath.Glob(filepath.Join(testenv.Root(), "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	navigation := read(t, "hack/site/config.mjs")
	for _, path := range below {
		if name := strings.TrimSuffix(filepath.Base(path), ".md"); !strings.Contains(navigation, `"`+name+`"`) {
			t.Errorf("hack/site/config.mjs does not have %s", name)
		}
	}
}
