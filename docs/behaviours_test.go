package docs_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestBehaviours_AreShownByTheTestsThatDocsNames checks that each row of docs/behaviours.md names
// tests that exist and have the row's number in their names.
func TestBehaviours_AreShownByTheTestsThatDocsNames(t *testing.T) {
	last := 0
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| (.+) \| (.+) \|$`).FindAllStringSubmatch(read(t, "docs/behaviours.md"), -1) {
		number, err := strconv.Atoi(row[1])
		if err != nil || number != last+1 {
			t.Errorf("row %s comes after %d", row[1], last)
		}
		last = number
		for shown := range strings.SplitSeq(row[3], "<br>") {
			t.Run(shown, func(t *testing.T) { expectTest(t, number, shown) })
		}
	}
	if last != 65 {
		t.Errorf("the last row is %d", last)
	}
}

// expectTest checks one "`package`: name" of a row.
func expectTest(t *testing.T, number int, shown string) {
	t.Helper()
	folder, name, found := strings.Cut(strings.TrimPrefix(shown, "`"), "`: ")
	if !found {
		t.Fatalf("%q is not a package with a test", shown)
	}
	_, numbers, _ := strings.Cut(strings.ToLower(name), "behaviour")
	if !slices.Contains(regexp.MustCompile(`\d+`).FindAllString(numbers, -1), strconv.Itoa(number)) {
		t.Errorf("%q does not name behaviour %d", name, number)
	}
	if source := tests(t, folder); !strings.Contains(source, "\nfunc "+name+"(") && !strings.Contains(source, strconv.Quote(name)) {
		t.Errorf("package %s has no test %q", folder, name)
	}
}
