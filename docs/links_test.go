package docs_test

import (
	"maps"
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

// pages returns the project's pages, by their paths in the repository.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "config/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(testenv.Root(), pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("found no pages %s (%v)", pattern, err)
		}
		for _, path := range found {
			page, _ := filepath.Rel(testenv.Root(), path)
			all = append(all, page)
		}
	}
	return all
}

// repository is the prefix of links in pages that are read elsewhere, such as that of the chart.
const repository = "https://github.com/reboot-operator/reboot-operator/blob/main/"

// TestLinks checks that every link to another page, file or section works.
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

// anchors returns the sections of a page as GitHub names them.
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

// TestSite checks that every page is in the navigation of the site that make docs builds.
func TestSite(t *testing.T) {
	navigation := read(t, "hack/site/config.mjs")
	for _, page := range pages(t) {
		name, isBelow := strings.CutPrefix(strings.TrimSuffix(page, ".md"), "docs/")
		if isBelow && !strings.Contains(navigation, `"`+name+`"`) {
			t.Errorf("hack/site/config.mjs does not have %s", name)
		}
	}
}

// TestQuestions checks that each question in CONTRIBUTING.md is answered within two clicks from the
// README: its page is linked from the README, or from a page that is.
func TestQuestions(t *testing.T) {
	_, list, _ := strings.Cut(read(t, "CONTRIBUTING.md"), "## Questions that the docs answer\n")
	list, _, _ = strings.Cut(list, "\n## ")
	questions := numbered.FindAllStringSubmatch(list, -1)
	if len(questions) != 20 {
		t.Errorf("there are %d questions", len(questions))
	}
	near := linked(t, "README.md")
	for page := range linked(t, "README.md") {
		if strings.HasSuffix(page, ".md") {
			maps.Copy(near, linked(t, page))
		}
	}
	for _, question := range questions {
		m := link.FindStringSubmatch(question[1])
		if m == nil || !near[filepath.Clean(m[1])] {
			t.Errorf("no page near the README answers %s", question[1])
		}
	}
}

// linked returns the files that a page links to, by their paths in the repository.
func linked(t *testing.T, page string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
		if m[1] != "" && !strings.Contains(m[1], "://") {
			all[filepath.Join(filepath.Dir(page), m[1])] = true
		}
	}
	return all
}
