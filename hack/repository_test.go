package hack

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
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

// Every Go module must get updates, and `make verify` must check its go.mod.
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

// The workflows only call targets of the Makefile, so that everything can also run locally.
func TestWorkflows_CallTargets(t *testing.T) {
	t.Parallel()
	makefile := contents(t, "Makefile")
	paths, err := filepath.Glob(filepath.Join(testenv.Root(), ".github", "workflows", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no workflows found (%v)", err)
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

// workflow holds the parts of a workflow that the tests check.
type workflow struct {
	Permissions map[string]string `json:"permissions"`
	Jobs        map[string]struct {
		Permissions map[string]string `json:"permissions"`
		Steps       []struct {
			Uses string         `json:"uses"`
			Run  string         `json:"run"`
			With map[string]any `json:"with"`
		} `json:"steps"`
	} `json:"jobs"`
}

// A stolen action, a moved tag or a malicious dependency must not get a token that it could abuse.
func TestWorkflows_HoldNoRightThatABuildCouldAbuse(t *testing.T) {
	t.Parallel()
	pinned := regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40}$`)
	builds := regexp.MustCompile(`\b(make|go|npm|npx|hack/\S+)\s`)
	paths, err := filepath.Glob(filepath.Join(testenv.Root(), ".github", "workflows", "*.yaml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no workflows found (%v)", err)
	}
	for _, path := range paths {
		file := filepath.Base(path)
		text := contents(t, filepath.Join(".github", "workflows", file))
		var w workflow
		if err := yaml.Unmarshal([]byte(text), &w); err != nil {
			t.Fatal(err)
		}
		if w.Permissions == nil || len(w.Permissions) > 0 {
			t.Errorf("%s: permissions are %v for every job, want {} and each job's own", file, w.Permissions)
		}
		for name, job := range w.Jobs {
			if len(job.Permissions) == 0 {
				t.Errorf("%s: job %s names no permissions", file, name)
			}
			writes := slices.Contains(slices.Collect(maps.Values(job.Permissions)), "write")
			for _, step := range job.Steps {
				checkout := strings.HasPrefix(step.Uses, "actions/checkout@")
				switch {
				case step.Uses != "" && !pinned.MatchString(step.Uses):
					t.Errorf("%s: job %s uses %s, which is another owner's or not pinned by commit", file, name, step.Uses)
				case step.Uses != "" && !regexp.MustCompile(regexp.QuoteMeta(step.Uses)+` # v\d+\.\d+\.\d+\n`).MatchString(text):
					t.Errorf("%s: job %s uses %s without its version in a comment", file, name, step.Uses)
				case checkout && step.With["persist-credentials"] != false:
					t.Errorf("%s: the checkout of job %s keeps its credentials", file, name)
				case writes && (checkout || builds.MatchString(step.Run+"\n")):
					t.Errorf("%s: job %s may write or sign, and builds: %s%s", file, name, step.Uses, step.Run)
				}
			}
		}
	}
}

// The newest patch release of each minor version must be tested, and untested versions must be
// reported.
func TestVersions_AreTheNewestOfEachMinor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		published, wanted string
		versions          []string
		message           string
	}{
		"from the oldest that the chart allows": {"v1.30.9 v1.31.9 v1.31.10 v1.32.0 v1.32.1-rc.0", "", []string{"v1.31.10", "v1.32.0"}, ""},
		"some":                                  {"v1.31.0 v1.32.0 v1.33.0", "1.31 1.33", []string{"v1.31.0", "v1.33.0"}, ""},
		"newer than the control plane": {
			"v1.31.0 v1.32.0 v1.33.0 v1.34.0", "",
			[]string{"v1.31.0", "v1.32.0", "v1.33.0", "v1.34.0"},
			"Kubernetes v1.34.0 is published, and hack/controlplane/go.mod has v1.33.0",
		},
		"a beta of the next version": {
			"v1.31.0 v1.34.0-beta.0", "",
			[]string{"v1.31.0"},
			"Kubernetes v1.34.0-beta.0 is published, and hack/controlplane/go.mod has v1.33.0",
		},
		"not published": {"v1.31.0 v1.32.0-beta.0", "1.32", nil, "Kubernetes 1.32 is not published"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			stub := "#!/bin/sh\ncase $* in\n*-versions*) echo 'k8s.io/kubernetes " + tc.published + "' ;;\n*) echo v1.33.0 ;;\nesac\n"
			must(t, os.WriteFile(filepath.Join(folder, "go"), []byte(stub), 0o700))
			env := []string{"VERSIONS=" + tc.wanted, "NOT_SHOWN=", "PATH=" + folder + string(os.PathListSeparator) + os.Getenv("PATH")}
			out, err := script(t, env, "versions/list.sh")
			var versions []string
			var rest []string
			for line := range strings.Lines(out) {
				if line = strings.TrimSpace(line); strings.HasPrefix(line, "v") {
					versions = append(versions, line)
				} else {
					rest = append(rest, line)
				}
			}
			message := strings.Join(rest, "")
			if diff := cmp.Diff(tc.versions, versions); diff != "" || message != tc.message || (err != nil) != (tc.versions == nil) {
				t.Errorf("%v, %q, want %q (-want +got):\n%s", err, message, tc.message, diff)
			}
		})
	}
}

// The same versions must be named everywhere: the oldest in the chart, and the newest in the
// control plane of all tests.
func TestVersions_AreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	oldest := regexp.MustCompile(`(?m)^kubeVersion: ">=1\.(\d+)\.0-0"$`).FindStringSubmatch(contents(t, "config/chart/Chart.yaml"))
	newest := regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes v1\.(\d+)\.`).FindStringSubmatch(contents(t, "hack/controlplane/go.mod"))
	if oldest == nil || newest == nil {
		t.Fatalf("oldest %v, newest %v", oldest, newest)
	}
	for path, want := range map[string]string{
		"README.md":                             "Kubernetes 1." + oldest[1] + " to 1." + newest[1],
		"CHANGELOG.md":                          "Kubernetes 1." + oldest[1] + " to 1." + newest[1],
		"config/chart/README.md":                "Kubernetes 1." + oldest[1] + " and later",
		"docs/install.md":                       "| `config/default` | 1." + newest[1] + " | their node | every change",
		"hack/kubectl.sh":                       "the operator needs 1." + oldest[1],
		"kubectl-reboot/doctor/installation.go": "oldest       = " + oldest[1] + "\n",
	} {
		if !strings.Contains(contents(t, path), want) {
			t.Errorf("%s does not say %q", path, want)
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

// walk visits each file in the folders of packages.
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

// Inputs of a renamed or moved fuzz target would never run again.
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

// The methods of a type must be in at most four files, and a reconciler may have at most a dozen
// methods, so that they can be read.
func TestReceivers_AreInFewFiles(t *testing.T) {
	t.Parallel()
	method := regexp.MustCompile(`(?m)^func \((?:\w+ )?\*?(\w+)`)
	files, methods := map[string][]string{}, map[string]int{} // by folder and name of the type
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

// The linter checks the imports of the pure packages. They must also not start goroutines, wait, or
// keep state between calls.
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

// impurities returns the statements and expressions of a package that start goroutines, use
// channels, or write package variables.
func impurities(files *token.FileSet, parsed []*ast.File) []ast.Node {
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Error: func(error) {}} // imports are unknown; the package's own names are not
	pkg, _ := config.Check("pure", files, parsed, info)
	ofPackage := func(expr ast.Expr) bool {
		for {
			switch inner := expr.(type) {
			case *ast.IndexExpr:
				expr = inner.X
			case *ast.SelectorExpr:
				expr = inner.X
			case *ast.StarExpr:
				expr = inner.X
			case *ast.ParenExpr:
				expr = inner.X
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
			matched := false
			switch node := node.(type) {
			case *ast.GoStmt, *ast.ChanType, *ast.SendStmt, *ast.SelectStmt:
				matched = true
			case *ast.UnaryExpr:
				matched = node.Op == token.ARROW || node.Op == token.AND && ofPackage(node.X)
			case *ast.AssignStmt:
				matched = slices.ContainsFunc(node.Lhs, ofPackage)
			case *ast.IncDecStmt:
				matched = ofPackage(node.X)
			}
			if matched {
				found = append(found, node)
			}
			return true
		})
	}
	return found
}
