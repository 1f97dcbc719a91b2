package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var (
	numbered = regexp.MustCompile(`(?m)^\d+\. (.+)$`)
	inCode   = regexp.MustCompile("`([^`\n]+)`")
	// items matches whole numbered items, which may have several lines. identifier matches a Go name,
	// or a method as Type.Name.
	items      = regexp.MustCompile(`(?m)^\d+\. .+(\n {3}.+)*$`)
	identifier = regexp.MustCompile(`^([A-Z]\w*\.)?[A-Za-z]\w*$`)
	// function matches a declaration, with the type of a method.
	function = regexp.MustCompile(`(?m)^func (?:\((?:\w+ )?\*?(\w+)\) )?(\w+)`)
)

// TestDesign_WalksNameFunctions checks that the walks of docs/design.md name files, and functions
// that are declared in them, and that each other file on the page exists.
func TestDesign_WalksNameFunctions(t *testing.T) {
	page := read(t, "docs/design.md")
	for _, name := range inCode.FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join(testenv.Root(), name[1])); strings.HasSuffix(name[1], ".go") && err != nil {
			t.Error(err)
		}
	}
	for _, heading := range []string{"## From a signal to logind\n", "## From an edit to a grant\n"} {
		_, walk, _ := strings.Cut(page, heading)
		walk, _, _ = strings.Cut(walk, "\n## ")
		steps := numbered.FindAllStringSubmatch(walk, -1)
		if len(steps) == 0 {
			t.Fatalf("%q has no steps", heading)
		}
		for _, step := range steps {
			names, _, _ := strings.Cut(step[1], ": ")
			var path string
			var declared map[string]bool
			for _, name := range inCode.FindAllStringSubmatch(names, -1) {
				switch {
				case strings.HasSuffix(name[1], ".go"):
					path, declared = name[1], functions(t, name[1])
				case !declared[name[1]]:
					t.Errorf("%q declares no function %q", path, name[1])
				}
			}
			if path == "" {
				t.Errorf("no file is named in %q", step[0])
			}
		}
	}
}

// TestDesign_AdditionsNameDeclarations checks that each step of "Where to add something" names only
// functions, types, variables and constants that a file of the step declares.
func TestDesign_AdditionsNameDeclarations(t *testing.T) {
	_, section, _ := strings.Cut(read(t, "docs/design.md"), "## Where to add something\n")
	section, _, _ = strings.Cut(section, "\n## ")
	checked := 0
	for _, step := range items.FindAllString(section, -1) {
		names, declared := inCode.FindAllStringSubmatch(step, -1), map[string]bool{}
		for _, name := range names {
			if strings.HasSuffix(name[1], ".go") {
				maps.Copy(declared, functions(t, name[1]))
				maps.Copy(declared, others(t, name[1]))
			}
		}
		for _, name := range names {
			if identifier.MatchString(name[1]) {
				checked++
				if !declared[name[1]] {
					t.Errorf("no file of the step declares %q: %s", name[1], step)
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d names are checked", checked)
	}
}

// others returns the types, variables and constants that a file declares.
func others(t *testing.T, path string) map[string]bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(testenv.Root(), path), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, declaration := range parsed.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range group.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				all[s.Name.Name] = true
			case *ast.ValueSpec:
				for _, name := range s.Names {
					all[name.Name] = true
				}
			}
		}
	}
	return all
}

// functions returns the functions that a file declares, methods as Type.Name.
func functions(t *testing.T, path string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, found := range function.FindAllStringSubmatch(read(t, path), -1) {
		all[strings.TrimPrefix(found[1]+"."+found[2], ".")] = true
	}
	return all
}
