package gate

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	secrets "github.com/reboot-operator/reboot-operator/controllers/secret"
	"github.com/reboot-operator/reboot-operator/hack/promserver"
)

const namespace = "default"

// exporter is a program that exports one gauge by the official library.
func exporter(t *testing.T) (gauge prometheus.Gauge, target string) {
	t.Helper()
	gauge = prometheus.NewGauge(prometheus.GaugeOpts{Name: "test_errors", Help: "Set by the test."})
	registry := prometheus.NewRegistry()
	registry.MustRegister(gauge)
	s := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(s.Close)
	return gauge, s.Listener.Addr().String()
}

// config is a server that scrapes targets and evaluates alerts, names and expressions, ten times a second. The text is
// YAML in the form of JSON.
func config(t *testing.T, dir string, alerts map[string]string, targets ...string) string {
	t.Helper()
	type object = map[string]any
	var rules []any
	for name, expression := range alerts {
		rules = append(rules, object{"alert": name, "expr": expression})
	}
	encode := func(content object) []byte {
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	files{t, dir}.write("rules.yml", encode(object{"groups": []any{object{"name": "test", "rules": rules}}}))
	return string(encode(object{
		"global":         object{"scrape_interval": "100ms", "scrape_timeout": "100ms", "evaluation_interval": "100ms"},
		"rule_files":     []string{"rules.yml"},
		"scrape_configs": []any{object{"job_name": "test", "static_configs": []any{object{"targets": targets}}}},
	}))
}

// asker asks like the manager does, with the Secrets of the test. The suite of the manager has those of an API server.
type asker struct {
	*Prometheus

	t       *testing.T
	secrets keptSecrets
}

func newAsker(t *testing.T) *asker {
	t.Helper()
	kept := keptSecrets{known: map[string]*corev1.Secret{}}
	return &asker{Prometheus: &Prometheus{Secrets: secrets.Reader{Reader: kept, Namespace: namespace}}, t: t, secrets: kept}
}

// in asks for a part of the test.
func (a *asker) in(t *testing.T) *asker {
	t.Helper()
	return &asker{Prometheus: a.Prometheus, t: t, secrets: a.secrets}
}

// keptSecrets are Secrets by their names.
type keptSecrets struct {
	client.Reader

	known map[string]*corev1.Secret
}

func (k keptSecrets) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s, there := k.known[key.Name]
	if !there {
		return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	s.DeepCopyInto(object.(*corev1.Secret))
	return nil
}

// keep makes the Secret what it is to be.
func (a *asker) keep(name string, keysAndValues ...string) {
	s := secret(keysAndValues...)
	s.Name, s.ResourceVersion = name, time.Now().String() // which is another one with each write
	a.secrets.known[name] = s
}

func (a *asker) ask(address, query, secret string) Answer {
	return a.askWithin(Timeout, address, query, secret)
}

func (a *asker) askWithin(limit time.Duration, address, query, secret string) Answer {
	ctx, cancel := context.WithTimeout(a.t.Context(), limit)
	defer cancel()
	g := v1alpha1.PrometheusGate{Name: "g", URL: address, Query: query}
	if secret != "" {
		g.SecretRef = &v1alpha1.SecretReference{Name: secret}
	}
	return a.Ask(ctx, g)
}

// expect asks until the answer is what it should be: the server scrapes ten times a second.
func (a *asker) expect(address, query, secret string, state v1alpha1.GateState, message string) {
	a.t.Helper()
	var got Answer
	right := func(context.Context) (bool, error) {
		got = a.ask(address, query, secret)
		return got.State == state && strings.Contains(got.Message, message), nil
	}
	if err := wait.PollUntilContextTimeout(a.t.Context(), 50*time.Millisecond, time.Minute, true, right); err != nil {
		a.t.Fatalf("got %s %q, want %s %q", got.State, got.Message, state, message)
	}
}

// TestPrometheus asks a real server, which scrapes a real exporter.
func TestPrometheus(t *testing.T) {
	a := newAsker(t)
	t.Run("queries", func(t *testing.T) { testQueries(a.in(t)) })
	t.Run("users and TLS", func(t *testing.T) { testPassword(a.in(t)) })
	t.Run("client certificates", func(t *testing.T) { testClientCertificate(a.in(t)) })
	t.Run("token", func(t *testing.T) { testToken(a.in(t)) })
	t.Run("failures", func(t *testing.T) { testFailures(a.in(t)) })
}

func testQueries(a *asker) {
	t := a.t
	errors, target := exporter(t)
	dir := t.TempDir()
	address := promserver.Start(t, dir, config(t, dir, map[string]string{
		"TooManyErrors": "test_errors > 2", "RebootOperatorNodePending": "vector(1)",
	}, target)).URL
	const firing = v1alpha1.GateFiring
	const alerts = `ALERTS{alertstate="firing"}`
	a.expect(address, "test_errors", "", firing, `test_errors{instance="`+target+`", job="test"} = 0`)
	a.expect(address, "test_errors > 2", "", isClear, "")
	a.expect(address, `count(ALERTS{alertname="RebootOperatorNodePending"})`, "", firing, "{} = 1") // the operator's own fires
	a.expect(address, alerts, "", isClear, "")                                                      // and does not count
	errors.Set(3.5)
	a.expect(address+"/", "test_errors > 2", "", firing, `= 3.5`)
	a.expect(address, alerts, "", firing, `ALERTS{alertname="TooManyErrors", alertstate="firing", instance="`+target+`", job="test"} = 1`)
	a.expect(address, "test_errors[1m]", "", firing, "= 3.5")
	a.expect(address, "scalar(test_errors) > bool 2", "", firing, "the query = 1")
	a.expect(address, "scalar(test_errors) > bool 4", "", isClear, "")
	a.expect(address, "scalar(nothing)", "", mute, "NaN")
	a.expect(address, `"text"`, "", mute, "the query gives a string")
	a.expect(address, "test_errors >", "", mute, "the query is refused: ")
	a.expect(address, "rate(nothing)", "", mute, "the query is refused: ")
	a.expect(address+"/nowhere", "up", "", mute, "the server refuses: client error: 404")
	errors.Set(0)
	a.expect(address, "test_errors > 2", "", isClear, "")
}
