package prometheus_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// monitoringKinds stand for the kinds of the Prometheus operator, and accept everything.
var monitoringKinds = []struct{ kind, plural string }{
	{"ServiceMonitor", "servicemonitors"}, {"PodMonitor", "podmonitors"}, {"PrometheusRule", "prometheusrules"},
}

const customResource = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[2]s.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: %[1]s, plural: %[2]s}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
---
`

// runsTheDocumentation runs the code blocks of the two guides on the fleet, as an administrator
// with the plugin.
func (m *monitored) runsTheDocumentation(t *testing.T) {
	plugin, err := testenv.Build(t.Context(), "kubectl-reboot")
	if err != nil {
		t.Fatal(err)
	}
	tools := filepath.Dir(plugin)
	var kinds strings.Builder
	for _, k := range monitoringKinds {
		fmt.Fprintf(&kinds, customResource, k.kind, k.plural)
	}
	if err := m.Cluster.ApplyManifest(t.Context(), []byte(kinds.String())); err != nil {
		t.Fatal(err)
	}
	if err := m.Cluster.AwaitKinds(t.Context()); err != nil {
		t.Fatal(err)
	}
	for guide, headings := range map[string]string{"runbooks.md": "^RebootOperator", "install.md": "^Metrics$"} {
		blocks, err := document.Blocks(filepath.Join(testenv.Root(), "docs", guide))
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range blocks {
			if block.Language == "sh" && regexp.MustCompile(headings).MatchString(block.Heading) {
				m.shell(t, tools, guide+", "+block.Heading, block.Text)
			}
		}
	}
	for _, object := range []string{"servicemonitor/reboot-operator-manager", "podmonitor/reboot-operator-agent", "prometheusrule/reboot-operator"} {
		if _, err := m.Cluster.Kubectl(t.Context(), nil, "get", object, "--namespace="+namespace); err != nil {
			t.Error(err)
		}
	}
	text, err := m.Cluster.Kubectl(t.Context(), nil, "get", "configmaps", "--namespace="+namespace, "--selector=grafana_dashboard=1",
		"--output=jsonpath={.items[*].data.reboot-operator\\.json}")
	want, readErr := os.ReadFile("dashboard.json")
	if err != nil || readErr != nil || strings.TrimSpace(text) != strings.TrimSpace(string(want)) {
		t.Errorf("the sidecar finds a dashboard of %d bytes, want %d: %v, %v", len(text), len(want), err, readErr)
	}
}

// shell runs a code block of a guide. It replaces node n4 and policy workers by those of the fleet.
func (m *monitored) shell(t *testing.T, tools, where, script string) {
	t.Helper()
	script = regexp.MustCompile(`\bn4\b`).ReplaceAllString(script, "node-1")
	script = regexp.MustCompile(`\bworkers\b`).ReplaceAllString(script, "default")
	if _, err := m.Cluster.Shell(t.Context(), testenv.Root(), "PATH="+tools+":$PATH\n"+script); err != nil {
		t.Errorf("%s: %v", where, err)
	}
}
