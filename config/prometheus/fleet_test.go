package prometheus_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/promserver"
)

// workload has a pod on each node, which may not be evicted while its budget exists.
const workload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: db, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: db}}, nodeTaintsPolicy: Honor}
      containers: [{name: db, image: example.com/db}]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: db, namespace: default}
spec:
  maxUnavailable: 0
  selector: {matchLabels: {app: db}}
`

// scraped is true while exactly both managers and both agents are scraped.
const scraped = `count(up{job=~"reboot-operator-.*"} == 1) == 4 and count(up{job=~"reboot-operator-.*"}) == 4`

// monitored is a fleet with a Prometheus that scrapes it as the monitors specify and evaluates the
// rules.
type monitored struct {
	*fleet.Fleet

	server *promserver.Server
	begun  time.Time
}

// TestFleet tests Prometheus with the managers and agents while two nodes are rebooted, one of them
// too slowly. Everything that the rules and the dashboard query must exist.
func TestFleet(t *testing.T) {
	m := startMonitored(t)
	m.reboots(t)
	t.Run("the managers and agents are found and scraped", m.areScraped)
	t.Run("metrics are for those who may read them", m.refusesUnboundAccounts)
	t.Run("every metric, label and value that is asked for is exported", m.exportsWhatIsAskedFor)
	t.Run("every expression can be evaluated", m.evaluates)
	t.Run("no rule fails, and no alert fires", m.alarmsNobody)
	t.Run("the commands of docs/runbooks.md and docs/install.md work", m.runsTheDocumentation)
}

func startMonitored(t *testing.T) *monitored {
	t.Helper()
	promserver.Program(t, "prometheus") // skips before anything is started
	log.SetLogger(logr.Discard())
	f, err := fleet.Start(t.Context(), fleet.Options{
		Nodes: 2, RebootDuration: 6 * time.Second, Workload: []byte(workload), Metrics: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Stop)
	var managers, agents monitor
	readYAML(t, "service_monitor.yaml", &managers)
	readYAML(t, "pod_monitor.yaml", &agents)
	dir := t.TempDir()
	readRules(t).write(t, dir)
	unbound := jobOf(managers, discover(t, f, managers), account(t, f, dir, "unbound", false))
	unbound.Name = "unbound"
	unbound.Relabelings = append(unbound.Relabelings, map[string]any{"target_label": "job", "replacement": "unbound"})
	return &monitored{Fleet: f, begun: time.Now(), server: promserver.Start(t, dir, configuration(t,
		jobOf(managers, discover(t, f, managers), account(t, f, dir, "prometheus", true)),
		jobOf(agents, discover(t, f, agents), ""), unbound,
	))}
}

// reboots updates both nodes and waits for the reboots: one has a blocked drain, and one times out.
func (m *monitored) reboots(t *testing.T) {
	t.Helper()
	m.awaitSample(t, scraped)
	policy, err := m.ApplyPolicy(t.Context(), func(spec *v1alpha1.RebootPolicySpec) {
		// With Abort a node with a closed budget would wait before its drain.
		spec.Drain = &v1alpha1.Drain{OnTimeout: v1alpha1.DrainTimeoutReboot}
		spec.Reboot = &v1alpha1.Reboot{Timeout: &v1alpha1.Duration{Duration: time.Second}, Settle: &v1alpha1.Duration{Duration: time.Second}}
		spec.MaxFailures = new(int32(50))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Stage(); err != nil {
		t.Fatal(err)
	}
	m.awaitSample(t, `max_over_time(reboot_operator_evictions_total{result="blocked"}[10m]) > 0`)
	m.awaitSample(t, `max_over_time(reboot_operator_reboot_phase_seconds{phase="Draining"}[10m])`)
	if _, err := m.Cluster.Kubectl(t.Context(), nil, "delete", "poddisruptionbudget", "db", "--namespace=default"); err != nil {
		t.Fatal(err)
	}
	m.awaitSample(t, `max_over_time(reboot_operator_overdue_seconds{reason="RebootTimedOut"}[10m])`)
	if err := m.Await(t.Context(), "both nodes to be back", func() bool { return policy.Finished(t.Context()) }); err != nil {
		t.Fatal(err)
	}
	for _, v := range m.Recorder.Read().Views {
		if v.Reboots != 1 { // the judge cannot see this in Nodes alone
			t.Errorf("%s was rebooted %d times", v.Node, v.Reboots)
		}
	}
	if err := m.Judge(t.Context()); err != nil {
		t.Error(err)
	}
	m.awaitSample(t, `reboot_operator_reboots_total{result="succeeded"} > 0`)
	m.awaitSample(t, scraped)
}

// awaitSample waits until a query has a result.
func (m *monitored) awaitSample(t *testing.T, query string) {
	t.Helper()
	if err := m.Await(t.Context(), query, func() bool { return len(m.query(t, query)) > 0 }); err != nil {
		t.Fatal(err)
	}
}

func (m *monitored) query(t *testing.T, query string) []promserver.Sample {
	t.Helper()
	found, err := m.server.Query(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return found
}

func (m *monitored) areScraped(t *testing.T) {
	want := []string{
		"reboot-operator-agent node-1 1 pod false", "reboot-operator-agent node-2 1 pod false",
		"reboot-operator-manager a manager's 1 pod true", "reboot-operator-manager a manager's 1 pod true",
	}
	var got []string
	// A scrape that takes longer than a second fails.
	err := m.Await(t.Context(), "all to be scraped at once", func() bool {
		got = nil
		for _, s := range m.query(t, `up{job=~"reboot-operator-.*"}`) {
			instance := s.Metric["instance"]
			if s.Metric["job"] == "reboot-operator-manager" {
				instance = "a manager's"
			}
			got = append(got, fmt.Sprint(s.Metric["job"], " ", instance, " ", s.Value[1], " pod ", s.Metric["pod"] != ""))
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
	if err != nil {
		t.Errorf("%v: got %q, want %q", err, got, want)
	}
	if found := m.query(t, `{job="reboot-operator-agent",__name__=~"go_.*|process_.*"}`); len(found) > 0 {
		t.Errorf("queries about agents return more than the agents: %v", found)
	}
}

func (m *monitored) refusesUnboundAccounts(t *testing.T) {
	if found := m.query(t, `max_over_time(up{job="unbound"}[10m]) == 1`); len(found) > 0 {
		t.Errorf("an account that is bound to no role reads metrics: %v", found)
	}
	var found struct {
		ActiveTargets []struct {
			Labels    map[string]string
			LastError string
		}
	}
	err := m.Await(t.Context(), "a refusal", func() bool {
		found.ActiveTargets = nil
		if err := m.server.API(t.Context(), "targets", nil, &found); err != nil {
			t.Fatal(err)
		}
		for _, target := range found.ActiveTargets {
			if target.Labels["job"] == "unbound" && strings.Contains(target.LastError, "403 Forbidden") {
				return true
			}
		}
		return false
	})
	if err != nil {
		t.Errorf("%v: %+v", err, found)
	}
}

// quiet lists the panels that show nothing for this fleet.
var quiet = map[string]string{"panel Policies I": "its policy has no windows", "panel Gates A": "its policy has no gates"}

func (m *monitored) evaluates(t *testing.T) {
	now := time.Now()
	for where, expression := range expressions(t) {
		var data struct{ Result []any }
		if err := m.server.API(t.Context(), "query_range", url.Values{
			"query": {expression}, "start": {m.begun.Format(time.RFC3339)}, "end": {now.Format(time.RFC3339)}, "step": {"1"},
		}, &data); err != nil {
			t.Errorf("%s: %v", where, err)
		}
		if empty := len(data.Result) == 0; strings.HasPrefix(where, "panel ") && empty != (quiet[where] != "") {
			t.Errorf("%s: empty %t during the whole run: %s", where, empty, expression)
		}
	}
}

func (m *monitored) alarmsNobody(t *testing.T) {
	var groups struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError, State string }
		}
	}
	if err := m.server.API(t.Context(), "rules", nil, &groups); err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			count++
			if r.Health != "ok" || r.LastError != "" || r.State == "firing" {
				t.Errorf("%s: health %q, state %q: %s", r.Name, r.Health, r.State, r.LastError)
			}
		}
	}
	if want := len(readRules(t).rules()); count != want {
		t.Errorf("%d rules are loaded, want %d", count, want)
	}
}
