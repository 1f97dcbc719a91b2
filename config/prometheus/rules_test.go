// Package prometheus_test tests config/prometheus: the rules with promtool, and the rules and the
// dashboard with a real server that scrapes a fleet.
package prometheus_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/hack/promserver"
)

// ruleGroups holds the groups of a PrometheusRule, in the format of a rule file.
type ruleGroups struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func readRules(t *testing.T) ruleGroups {
	t.Helper()
	var object struct {
		APIVersion, Kind string
		Metadata         map[string]any
		Spec             ruleGroups
	}
	readYAML(t, "rules.yaml", &object)
	return object.Spec
}

func readYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func (g ruleGroups) rules() (all []rule) {
	for _, group := range g.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// write writes the rules as a rule file.
func (g ruleGroups) write(t *testing.T, dir string) {
	t.Helper()
	text, err := yaml.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rules.yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), promserver.Program(t, "promtool"), args...)
	command.Dir = dir
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
	}
}

func TestRules_FireInTheirCaseAndNotInTheNearMiss(t *testing.T) {
	for name, texts := range map[string]bool{"rules_test.yaml": false, "annotations_test.yaml": true} {
		t.Run(name, func(t *testing.T) {
			groups, dir := readRules(t), t.TempDir()
			for _, group := range groups.Groups {
				for i := range group.Rules {
					if !texts {
						group.Rules[i].Annotations = nil
					}
				}
			}
			groups.write(t, dir)
			cases, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), cases, 0o600); err != nil {
				t.Fatal(err)
			}
			promtool(t, dir, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")
			promtool(t, dir, "test", "rules", name)
		})
	}
}

// Every alert must have a case in which it fires and one in which it does not.
func TestRules_AreAllTested(t *testing.T) {
	var file struct {
		Tests []struct {
			Cases []struct {
				Alert  string `json:"alertname"`
				Alerts []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	text, err := os.ReadFile("rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			fires[c.Alert] = fires[c.Alert] || len(c.Alerts) > 0
			silent[c.Alert] = silent[c.Alert] || len(c.Alerts) == 0
		}
	}
	for _, r := range readRules(t).rules() {
		if !fires[r.Alert] || !silent[r.Alert] {
			t.Errorf("%s: fires in a test %t, is silent in one %t", r.Alert, fires[r.Alert], silent[r.Alert])
		}
	}
}

// Every alert must have a summary, a description of what to do, and a runbook.
func TestRules_DescribeWhatToDo(t *testing.T) {
	const book = "https://github.com/reboot-operator/reboot-operator/blob/main/docs/runbooks.md#"
	var names []string
	for _, r := range readRules(t).rules() {
		names = append(names, r.Alert)
		if !strings.HasPrefix(r.Alert, "RebootOperator") {
			t.Errorf("%s: gates leave the operator's own alerts out by their prefix", r.Alert)
		}
		want := book + strings.ToLower(r.Alert)
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Annotations["runbook_url"] != want {
			t.Errorf("%s: annotations %q", r.Alert, r.Annotations)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s: severity %q", r.Alert, r.Labels["severity"])
		}
	}
	if diff := cmp.Diff(runbooks(t), names, cmp.Transformer("sorted", func(s []string) []string { return slices.Sorted(slices.Values(s)) })); diff != "" {
		t.Errorf("docs/runbooks.md (-sections +alerts):\n%s", diff)
	}
}

// runbooks returns the sections of docs/runbooks.md that are named after an alert.
func runbooks(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "runbooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "## RebootOperator"); ok {
			names = append(names, "RebootOperator"+name)
		}
	}
	return names
}
