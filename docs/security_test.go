package docs_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// attempted maps the sections of security.md to those of config/attempts.md.
var attempted = map[string][]string{
	"A stolen token of an agent":    {"The agent's token of node n1"},
	"On Kubernetes 1.31 to 1.35":    {"The agent's token of node n1 in the fallback"},
	"A stolen token of the manager": {"The manager's token", "The manager's token if the manager creates the agents' pods"},
	"Whoever may patch Nodes":       {"A token that may patch Nodes"},
	"A hostile pod":                 {"The token of any other pod"},
}

// claim is a sentence of docs/security.md.
type claim struct {
	heading, sentence string
	// can is true in a table of what somebody can do.
	can   bool
	shown []string
}

// TestSecurity_IsShown checks that each sentence of docs/security.md names what shows it: an attempt
// with the answer that the sentence describes, a test, or a make target.
func TestSecurity_IsShown(t *testing.T) {
	all := claims(t)
	if len(all) < 40 {
		t.Errorf("there are only %d claims", len(all))
	}
	for _, c := range all {
		for _, shown := range c.shown {
			t.Run(shown, func(t *testing.T) { c.expectShown(t, shown) })
		}
	}
}

// claims returns the rows of the tables with a column "shown by".
func claims(t *testing.T) []claim {
	t.Helper()
	var all []claim
	heading, head := "", ""
	for line := range strings.Lines(read(t, "docs/security.md")) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "#"):
			heading = strings.TrimLeft(line, "# ")
		case !strings.HasPrefix(line, "| "):
			if line == "" {
				head = ""
			}
		case head == "":
			head = line
		case strings.HasSuffix(head, "| shown by |"):
			cells := strings.Split(strings.Trim(line, "| "), " | ")
			can := strings.Contains(head, " can |") || strings.Contains(head, " can also |")
			all = append(all, claim{heading, cells[0], can, strings.Split(cells[1], "<br>")})
		}
	}
	return all
}

// expectShown looks for a row of the attempts, `package`: text of its tests, or `make target`.
func (c claim) expectShown(t *testing.T, shown string) {
	t.Helper()
	attempt, isAttempt := strings.CutPrefix(shown, "attempt: ")
	folder, text, isTest := strings.Cut(strings.TrimPrefix(shown, "`"), "`: ")
	target, isTarget := strings.CutPrefix(strings.Trim(shown, "`"), "make ")
	switch {
	case isAttempt:
		if answers := answersTo(t, attempt, attempted[c.heading]); !answers[c.can] || answers[!c.can] {
			t.Errorf("%q: of the attempt %q config/attempts.md shows allowed %v", c.sentence, attempt, answers)
		}
	case isTest:
		if !strings.Contains(tests(t, folder), text) {
			t.Errorf("no test of %s has the text %q", folder, text)
		}
	case isTarget:
		if !strings.Contains(read(t, "Makefile"), "\n"+target+":") {
			t.Errorf("make has no target %s", target)
		}
	default:
		t.Errorf("%q is neither an attempt, nor a test, nor a target", shown)
	}
}

// answersTo returns how an attempt was answered, for all who tried it, or with "who, what" for one.
func answersTo(t *testing.T, attempt string, sections []string) (allowed map[bool]bool) {
	t.Helper()
	allowed = map[bool]bool{}
	for _, section := range sections {
		rows, err := document.Table(filepath.Join(testenv.Root(), "config", "attempts.md"), section)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range rows {
			if len(row) == 5 && (attempt == row[1] || attempt == row[0]+", "+row[1]) {
				allowed[row[3] == "allowed"] = true
			}
		}
	}
	return allowed
}

// tests returns the source of a folder's tests.
func tests(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testenv.Root(), folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
