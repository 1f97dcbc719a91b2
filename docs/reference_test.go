package docs_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/reboot-operator/reboot-operator/agent/reboot"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers"
	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

// TestReference checks that the lists of docs/reference.md have every name of the programs and no other.
func TestReference(t *testing.T) {
	constants := contract(t)
	for heading, want := range map[string][]string{
		"Conditions":             slices.Concat(constants.of("NodeReboot"), constants.of("Condition"), []string{"DrainInProgress", "Drained", "MaintenanceInProgress", "MaintenancePlanned"}),
		"Events":                 slices.Concat(constants.of("Event"), reasonsOfEvents()),
		"Metrics":                allMetrics(t),
		"Annotations and labels": slices.Concat(constants.of("Annotation"), constants.of("Label"), constants.of("Taint"), constants.of("Finalizer")),
		"Flags of the manager":   managerFlags(),
		"Flags of the agent":     agentFlags(t),
	} {
		t.Run(heading, func(t *testing.T) {
			got := firstCells(t, "reference.md", heading)
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-program +docs):\n%s", diff)
			}
		})
	}
}

// TestDesign_HasTheRecord checks that docs/design.md describes every annotation on Nodes.
func TestDesign_HasTheRecord(t *testing.T) {
	record := read(t, "docs/design.md")
	for _, key := range contract(t).of("Annotation") {
		if !strings.Contains(record, "`"+key+"`") {
			t.Errorf("%s is missing", key)
		}
	}
}

// TestDesign_HasEveryFolder checks that docs/design.md lists every folder, and no folder that is gone.
func TestDesign_HasEveryFolder(t *testing.T) {
	folders := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^([a-z][a-z0-9/-]*) +\S`).FindAllStringSubmatch(codeOf(t), -1) {
		folders[m[1]] = true
		if _, err := os.Stat(filepath.Join(testenv.Root(), m[1])); err != nil {
			t.Error(err)
		}
	}
	for _, pattern := range []string{"[a-z]*", "agent/*", "controllers/*", "internal/*"} {
		paths, err := filepath.Glob(filepath.Join(testenv.Root(), pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			name, _ := filepath.Rel(testenv.Root(), path)
			made := slices.Contains([]string{"bin", "dist"}, name)
			if info, err := os.Stat(path); err != nil || !info.IsDir() || made || folders[name] || name == "api" && folders["api/v1alpha1"] {
				continue
			}
			t.Errorf("%s is missing", name)
		}
	}
}

// TestReasons_AreAllExplained checks that docs/reasons.md explains every reason.
func TestReasons_AreAllExplained(t *testing.T) {
	text := read(t, "docs/reasons.md")
	for _, reason := range contract(t).of("Reason") {
		if !strings.Contains(text, "`"+reason+"`") {
			t.Errorf("%s is not explained", reason)
		}
	}
}

// constants holds the strings that the API's package exports, by their names.
type constants map[string]string

func (c constants) of(prefix string) []string {
	var values []string
	for name, value := range c {
		if strings.HasPrefix(name, prefix) {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// reasonsOfEvents returns the reasons that are also reasons of events.
func reasonsOfEvents() []string {
	return []string{
		string(v1alpha1.ReasonAgentSilent),
		string(v1alpha1.ReasonAgentsMissing),
		string(v1alpha1.ReasonAgentsReady),
		string(v1alpha1.ReasonAlertFiring),
		string(v1alpha1.ReasonAmbiguousClient),
		string(v1alpha1.ReasonBlockingPod),
		string(v1alpha1.ReasonCoordinatorConflict),
		string(v1alpha1.ReasonDeadlineNear),
		string(v1alpha1.ReasonDeadlinePassed),
		string(v1alpha1.ReasonDrainTimedOut),
		string(v1alpha1.ReasonGateUnreachable),
		string(v1alpha1.ReasonHalted),
		string(v1alpha1.ReasonHookFailed),
		string(v1alpha1.ReasonHookTimedOut),
		string(v1alpha1.ReasonInvalid),
		string(v1alpha1.ReasonLimitHeld),
		string(v1alpha1.ReasonNodeWriteRefused),
		string(v1alpha1.ReasonObjectNotReady),
		string(v1alpha1.ReasonPolicyConflict),
		string(v1alpha1.ReasonRebootRefused),
		string(v1alpha1.ReasonRebootTimedOut),
		string(v1alpha1.ReasonRebooting),
		string(v1alpha1.ReasonRecordUnreadable),
		string(v1alpha1.ReasonResumed),
		string(v1alpha1.ReasonSharedPolicyNotFound),
		string(v1alpha1.ReasonStartupTaint),
		string(v1alpha1.ReasonUncordoned),
		string(v1alpha1.ReasonUndrainablePod),
		string(v1alpha1.ReasonUnknownClient),
		string(v1alpha1.ReasonUpdateNotApplied),
		string(v1alpha1.ReasonUrgent),
		string(v1alpha1.ReasonWaitingForHook),
	}
}

func contract(t *testing.T) constants {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(testenv.Root(), "api", "v1alpha1", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	all := constants{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			spec, isSpec := n.(*ast.ValueSpec)
			if !isSpec || len(spec.Values) != 1 {
				return true
			}
			literal, isLiteral := spec.Values[0].(*ast.BasicLit)
			if value, err := strconv.Unquote(literalOf(literal)); isLiteral && err == nil && spec.Names[0].IsExported() {
				all[spec.Names[0].Name] = value
			}
			return true
		})
	}
	return all
}

func literalOf(literal *ast.BasicLit) string {
	if literal == nil || literal.Kind != token.STRING {
		return ""
	}
	return literal.Value
}

// allMetrics returns the metrics of both programs as name{labels}.
func allMetrics(t *testing.T) []string {
	t.Helper()
	manager, agent := prometheus.NewRegistry(), prometheus.NewRegistry()
	controllers.NewMetrics(manager)
	reboot.NewMetrics(agent)
	agent.MustRegister(lifecycle.BuildInfo(""))
	pattern := regexp.MustCompile(`fqName: "(reboot_operator_\w+)".*variableLabels: (\{.*\})\}`)
	var all []string
	for _, registry := range []*prometheus.Registry{manager, agent} {
		descs := make(chan *prometheus.Desc)
		go func() {
			defer close(descs)
			registry.Describe(descs)
		}()
		for desc := range descs {
			if m := pattern.FindStringSubmatch(desc.String()); m != nil {
				all = append(all, m[1]+strings.TrimSuffix(m[2], "{}"))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func managerFlags() []string {
	var o controllers.Options
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	o.Bind(flags)
	var names []string
	flags.VisitAll(func(f *flag.Flag) { names = append(names, "--"+f.Name) })
	return names
}

// agentFlags reads the agent's flags from its source, because package main cannot be imported.
func agentFlags(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, m := range regexp.MustCompile(`flags\.(?:\w+Var\(&o\.\w+, |Func\()"([a-z-]+)"`).FindAllStringSubmatch(read(t, "agent/options.go"), -1) {
		names = append(names, "--"+m[1])
	}
	return names
}

// firstCells returns the code in the first cell of each row of the tables under a heading.
func firstCells(t *testing.T, guide, heading string) []string {
	t.Helper()
	rows, err := document.Table(filepath.Join(testenv.Root(), "docs", guide), heading)
	if err != nil {
		t.Fatal(err)
	}
	var cells []string
	for _, row := range rows {
		_, code, _ := strings.Cut(row[0], "`")
		cells = append(cells, strings.TrimSuffix(code, "`"))
		if row[len(row)-1] == "" && heading != "Conditions" {
			t.Errorf("nothing is reported of %s", row[0])
		}
	}
	return cells
}

func codeOf(t *testing.T) string {
	t.Helper()
	return blocks(t, "design.md")[" Code"]
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(), path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestInstall_ListsOverlaysAndComponents checks that docs/install.md lists every overlay and component.
func TestInstall_ListsOverlaysAndComponents(t *testing.T) {
	page := read(t, "docs/install.md")
	for folder, list := range map[string]*regexp.Regexp{
		"overlays":   regexp.MustCompile("(?m)^\\|.* `config/overlays/([a-z-]+)` \\|"),
		"components": regexp.MustCompile("(?m)^\\| `([a-z][a-z-]+)` \\| .*agents"),
	} {
		entries, err := os.ReadDir(filepath.Join(testenv.Root(), "config", folder))
		if err != nil {
			t.Fatal(err)
		}
		var want, got []string
		for _, entry := range entries {
			want = append(want, entry.Name())
		}
		for _, m := range list.FindAllStringSubmatch(page, -1) {
			got = append(got, m[1])
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("config/%s (-want +got):\n%s", folder, diff)
		}
	}
}
