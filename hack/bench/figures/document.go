package figures

import (
	"fmt"
	"os"
	"strings"
)

// Sections of a document that a part has written stand between two comments that name it, and the next run replaces what is
// between them. All else is people's.
const beginMark, endMark = "<!-- %s: written by make bench, which overwrites it -->\n", "<!-- %s: end -->\n"

// Write puts the Markdown of a part into the document, in place of what the part has put there before, else at the end.
func Write(path, part, markdown string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err // it names the file
	}
	document, err := replace(string(text), part, markdown)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(document), 0o600) // its mode stays; the error names it
}

func replace(document, part, markdown string) (string, error) {
	begin, end := fmt.Sprintf(beginMark, part), fmt.Sprintf(endMark, part)
	before, rest, found := strings.Cut(document, begin)
	if !found {
		return fmt.Sprintf("%s\n%s%s%s", strings.TrimRight(document, "\n")+"\n", begin, markdown, end), nil
	}
	_, after, closed := strings.Cut(rest, end)
	if !closed {
		return "", fmt.Errorf("what %s has written has no end: %q is missing", part, strings.TrimSpace(end))
	}
	return before + begin + markdown + end + after, nil
}
