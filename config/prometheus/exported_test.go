package prometheus_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/reboot-operator/reboot-operator/agent/reboot"
	"github.com/reboot-operator/reboot-operator/controllers"
)

// exported returns the labels of a metric with all values that were seen, including labels without
// series yet.
func (m *monitored) exported(t *testing.T, metric string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for _, name := range described()[metric] {
		found[name] = nil
	}
	var series []map[string]string
	if err := m.server.API(t.Context(), "series", url.Values{
		"match[]": {metric}, "start": {m.begun.Format(time.RFC3339)}, "end": {time.Now().Add(time.Minute).Format(time.RFC3339)},
	}, &series); err != nil {
		t.Fatal(err)
	}
	for _, labels := range series {
		for name, value := range labels {
			found[name] = append(found[name], value)
		}
	}
	return found
}

// described returns the metrics that the programs register, with their labels. Some have no series
// while all is well.
func described() map[string][]string {
	agent, manager := prometheus.NewRegistry(), prometheus.NewRegistry()
	reboot.NewMetrics(agent)
	controllers.NewMetrics(manager)
	pattern := regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{(.*)\}\}`)
	all := map[string][]string{}
	for _, registry := range []prometheus.Collector{metrics.Registry.(prometheus.Collector), agent, manager} {
		descs := make(chan *prometheus.Desc)
		go func() {
			defer close(descs)
			registry.Describe(descs)
		}()
		for desc := range descs {
			if found := pattern.FindStringSubmatch(desc.String()); found != nil {
				all[found[1]] = append(strings.Split(found[2], ","), "job", "instance")
			}
		}
	}
	return all
}

func (m *monitored) exportsWhatIsAskedFor(t *testing.T) {
	for where, expression := range expressions(t) {
		root := parse(t, m.server, expression)
		for _, selector := range root.selectors() {
			if selector.Name != "ALERTS" { // Prometheus creates it
				m.exports(t, where, selector)
			}
		}
		root.uses(func(label string, of *node) {
			for _, selector := range of.selectors() {
				if _, known := m.exported(t, selector.Name)[label]; known {
					return
				}
			}
			t.Errorf("%s: no metric in it has label %q", where, label)
		})
	}
}

// exports checks that a selector matches exported metrics, labels and values.
func (m *monitored) exports(t *testing.T, where string, selector *node) {
	t.Helper()
	labels := m.exported(t, selector.Name)
	if len(labels) == 0 {
		t.Errorf("%s: nobody exports %s", where, selector.Name)
		return
	}
	for _, asked := range selector.Matchers {
		values, known := labels[asked.Name]
		if asked.Name == "__name__" || known && asked.Value == ".*" {
			continue
		}
		for value := range strings.SplitSeq(asked.Value, "|") {
			exported := slices.Contains(values, value) || asked.Name == "reason" && isReason(t, value)
			if !known || !exported {
				t.Errorf("%s: %s has no %s=%q; seen: %q", where, selector.Name, asked.Name, value, slices.Compact(slices.Sorted(slices.Values(values))))
			}
		}
	}
}

// isReason reports whether the API has a reason. No single run has all of them.
func isReason(t *testing.T, value string) bool {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "..", "api", "v1alpha1", "rebootpolicy_conditions.go"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(source), `Reason = "`+value+`"`)
}
