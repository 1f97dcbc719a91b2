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

func TestCells(t *testing.T) {
	got, err := document.Cells(write(t, "| a | b |\n|---|---|\n| `1` | |\n| 3 | 4 |\n\ntext\n\n| c |\n|---|\n| 5 |\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"`1`", ""}, {"3", "4"}, {"5"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTable(t *testing.T) {
	path := write(t, "| 1 |\n|---|\n| 2 |\n## Here\n| 3 |\n|---|\n| `4` |\n\n### There\n| 5 |\n|---|\n| 6 |\n")
	got, err := document.Table(path, "Here")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]string{{"`4`"}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
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
	if _, err := document.Cells("none.md"); err == nil {
		t.Error("a missing file is taken for cells")
	}
}
