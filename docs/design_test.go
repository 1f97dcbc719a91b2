package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
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
)

// The walks of docs/design.md name files, and functions that are declared in them. Each other file that the page names exists.
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

// functions are those that a file declares; a method is Type.Name.
func functions(t *testing.T, path string) map[string]bool {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(testenv.Root(), path), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, declaration := range parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		name := function.Name.Name
		if function.Recv != nil {
			receiver := function.Recv.List[0].Type
			if pointer, ok := receiver.(*ast.StarExpr); ok {
				receiver = pointer.X
			}
			if kind, ok := receiver.(*ast.Ident); ok {
				name = kind.Name + "." + name
			}
		}
		all[name] = true
	}
	return all
}
