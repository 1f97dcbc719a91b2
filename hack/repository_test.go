package hack

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// Every Go module gets updates, and `make verify` looks after its go.mod.
func TestModules_AreLookedAfter(t *testing.T) {
	t.Parallel()
	var want []string
	for _, pattern := range []string{"go.mod", "hack/*/go.mod"} {
		paths, err := filepath.Glob(filepath.Join(testenv.Root(), pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			folder, _ := filepath.Rel(testenv.Root(), filepath.Dir(path))
			want = append(want, folder)
		}
	}
	slices.Sort(want)

	var updates struct {
		Updates []struct {
			Ecosystem   string   `json:"package-ecosystem"`
			Directories []string `json:"directories"`
		} `json:"updates"`
	}
	if err := yaml.Unmarshal([]byte(contents(t, ".github/dependabot.yml")), &updates); err != nil {
		t.Fatal(err)
	}
	var updated []string
	for _, update := range updates.Updates {
		if update.Ecosystem != "gomod" {
			continue
		}
		for _, folder := range update.Directories {
			if folder = strings.Trim(folder, "/"); folder == "" {
				folder = "."
			}
			updated = append(updated, folder)
		}
	}
	loop := regexp.MustCompile(`for module in ([^;]*);`).FindStringSubmatch(contents(t, "hack/verify.sh"))[1]
	verified := strings.Fields(strings.NewReplacer("${WHOLE:+", "", "}", "").Replace(loop))
	for of, got := range map[string][]string{".github/dependabot.yml": updated, "hack/verify.sh": verified} {
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-modules +looked after):\n%s", of, diff)
		}
	}
}

// The workflows do what can be done here, too: they call targets of the Makefile.
func TestWorkflows_CallTargets(t *testing.T) {
	t.Parallel()
	makefile := contents(t, "Makefile")
	paths, err := filepath.Glob(filepath.Join(testenv.Root(), ".github", "workflows", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no workflows (%v)", err)
	}
	for _, path := range paths {
		name := filepath.Join(".github", "workflows", filepath.Base(path))
		text := contents(t, name)
		calls := regexp.MustCompile(`\bmake ([a-z0-9-]+)`).FindAllStringSubmatch(text, -1)
		if len(calls) == 0 {
			t.Errorf("%s calls no target", name)
		}
		for _, call := range calls {
			if !strings.Contains(makefile, "\n"+call[1]+":") {
				t.Errorf("%s calls make %s, which there is not", name, call[1])
			}
		}
	}
}

func contents(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(), path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// walk visits each file below the folders of packages.
func walk(t *testing.T, visit func(path string)) {
	t.Helper()
	for _, top := range []string{"agent", "api", "controllers", "hack", "internal", "kubectl-reboot"} {
		err := filepath.WalkDir(filepath.Join(testenv.Root(), top), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				visit(path)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// Inputs of a fuzz target that was renamed or moved would never be run again.
func TestCorpora_BelongToTargets(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	walk(t, func(path string) {
		if folder := filepath.Dir(path); strings.HasSuffix(filepath.Dir(folder), "/testdata/fuzz") {
			found[folder] = true
		}
	})
	for folder := range found {
		tests, err := filepath.Glob(filepath.Join(folder, "../../../*_test.go"))
		if err != nil || !slices.ContainsFunc(tests, func(test string) bool {
			text, err := os.ReadFile(test)
			return err == nil && strings.Contains(string(text), "\nfunc "+filepath.Base(folder)+"(")
		}) {
			t.Errorf("%s is of no target (%v)", folder, err)
		}
	}
	if len(found) == 0 {
		t.Error("no corpus was found")
	}
}

// A type can be read: its methods are in four files at most, and a reconciler, which sees everything, has a dozen at most.
func TestReceivers_AreInFewFiles(t *testing.T) {
	t.Parallel()
	method := regexp.MustCompile(`(?m)^func \((?:\w+ )?\*?(\w+)`)
	files, methods := map[string][]string{}, map[string]int{} // of each type, by folder and name
	walk(t, func(path string) {
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.Base(path), "zz_generated") {
			return
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		for _, found := range method.FindAllStringSubmatch(string(text), -1) {
			receiver := filepath.Join(filepath.Dir(path), found[1])
			methods[receiver]++
			if !slices.Contains(files[receiver], path) {
				files[receiver] = append(files[receiver], path)
			}
		}
	})
	for receiver, in := range files {
		if len(in) > 4 {
			t.Errorf("the methods of %s are in %d files: %v", receiver, len(in), in)
		}
		if strings.HasSuffix(receiver, "Reconciler") && methods[receiver] > 12 {
			t.Errorf("%s has %d methods", receiver, methods[receiver])
		}
	}
	if len(files) < 100 {
		t.Errorf("only %d types were found", len(files))
	}
}

// The linter holds what the pure packages import. They also start nothing, wait for nothing, and remember nothing between two calls.
func TestPurePackages_AreFunctionsOfTheirArguments(t *testing.T) {
	t.Parallel()
	var linter struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]struct {
						Files []string `json:"files"`
					} `json:"rules"`
				} `json:"depguard"`
			} `json:"settings"`
		} `json:"linters"`
	}
	if err := yaml.Unmarshal([]byte(contents(t, ".golangci.yml")), &linter); err != nil {
		t.Fatal(err)
	}
	packages := 0
	for _, pattern := range linter.Linters.Settings.Depguard.Rules["pure"].Files {
		if strings.HasPrefix(pattern, "!") {
			continue
		}
		packages++
		paths, err := filepath.Glob(strings.Replace(pattern, "${config-path}", testenv.Root(), 1))
		if err != nil {
			t.Fatal(err)
		}
		files := token.NewFileSet()
		var parsed []*ast.File
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			parsed = append(parsed, file)
		}
		if len(parsed) == 0 {
			t.Errorf("%s matches no file", pattern)
		}
		for _, node := range impurities(files, parsed) {
			t.Errorf("%s: a pure package has no goroutine and no channel, and writes no variable of the package", files.Position(node.Pos()))
		}
	}
	if packages < 10 {
		t.Errorf("only %d packages are checked", packages)
	}
}

// impurities are the statements and expressions of a package that start goroutines, use channels, or write its variables.
func impurities(files *token.FileSet, parsed []*ast.File) []ast.Node {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Error: func(error) {}} // imports are unknown; the package's own names are not
	pkg, _ := config.Check("pure", files, parsed, info)
	ofPackage := func(at ast.Expr) bool {
		for {
			switch inner := at.(type) {
			case *ast.IndexExpr:
				at = inner.X
			case *ast.SelectorExpr:
				at = inner.X
			case *ast.StarExpr:
				at = inner.X
			case *ast.ParenExpr:
				at = inner.X
			case *ast.Ident:
				written, isVariable := info.Uses[inner].(*types.Var)
				return isVariable && written.Parent() == pkg.Scope()
			default:
				return false
			}
		}
	}
	var found []ast.Node
	for _, file := range parsed {
		ast.Inspect(file, func(node ast.Node) bool {
			is := false
			switch node := node.(type) {
			case *ast.GoStmt, *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
				is = true
			case *ast.UnaryExpr:
				is = node.Op == token.ARROW || node.Op == token.AND && ofPackage(node.X)
			case *ast.AssignStmt:
				is = slices.ContainsFunc(node.Lhs, ofPackage)
			case *ast.IncDecStmt:
				is = ofPackage(node.X)
			}
			if is {
				found = append(found, node)
			}
			return true
		})
	}
	return found
}
