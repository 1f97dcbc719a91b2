package document_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/reboot-operator/reboot-operator/hack/document"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "text.md")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestBlocks(t *testing.T) {
	got, err := document.Blocks(write(t, "# One\n```sh\n# no heading\na\n```\n## Two: a `b`\n1. item\n\n   ```yaml\n   x:\n     y: 1\n   ```\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []document.Block{
		{Heading: "One", Language: "sh", Text: "# no heading\na\n"},
		{Heading: "Two: a `b`", Language: "yaml", Text: "x:\n  y: 1\n"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTable(t *testing.T) {
	path := write(t, "| 1 | |\n|---|---|\n| 2 | |\n\ntext\n\n| c |\n|---|\n| 5 |\n## Here\n| 3 |\n|---|\n| `4` |\n")
	for heading, want := range map[string][][]string{"": {{"2", ""}, {"5"}, {"`4`"}}, "Here": {{"`4`"}}} {
		got, err := document.Table(path, heading)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("under %q: %v (-want +got):\n%s", heading, err, diff)
		}
	}
	if _, err := document.Table(path, "Nowhere"); err == nil {
		t.Error("a heading that is not there has a table")
	}
}

func TestErrorsAreReported(t *testing.T) {
	if _, err := document.Blocks(write(t, "# One\n```sh\na\n")); err == nil {
		t.Error("a fence that is not closed is taken")
	}
	if _, err := document.Blocks("none.md"); err == nil {
		t.Error("a missing file is taken for blocks")
	}
	if _, err := document.Table("none.md", ""); err == nil {
		t.Error("a missing file is taken for tables")
	}
}

func TestEdit(t *testing.T) {
	const begin, end = "<!-- x: written by make bench -->\n", "<!-- x: end -->\n"
	cases := map[string]struct{ before, want string }{
		"its section":     {"by hand\n" + begin + "\n| old |\n\n" + end + "too\n", "by hand\n" + begin + "\n| old |\nnew\n\n" + end + "too\n"},
		"nothing yet":     {begin + end, begin + "\nnew\n\n" + end},
		"no section":      {"# A\n", "# A\n"},
		"no end":          {begin + "old\nby hand\n", begin + "old\nby hand\n"},
		"of another name": {"<!-- xy: written -->\n<!-- xy: end -->\n", "<!-- xy: written -->\n<!-- xy: end -->\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			path := write(t, tc.before)
			err := document.Edit(path, "x", func(old string) string { return old + "\nnew" })
			got, failed := os.ReadFile(path)
			if string(got) != tc.want || failed != nil || (err != nil) != (tc.before == tc.want) {
				t.Errorf("%v, %v:\n%s", err, failed, got)
			}
		})
	}
}

func TestRows(t *testing.T) {
	want := "| a | b |\n|---:|---|\n| 1 | c\\|d |\n"
	if diff := cmp.Diff(want, document.Rows([]string{">a", "b"}, [][]string{{"1", "c|d"}})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
