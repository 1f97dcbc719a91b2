package gate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/reading"
	"github.com/reboot-operator/reboot-operator/hack/promserver"
)

const namespace = "default"

// exporter starts a program that exports one gauge with the official library.
func exporter(t *testing.T) (gauge prometheus.Gauge, target string) {
	t.Helper()
	gauge = prometheus.NewGauge(prometheus.GaugeOpts{Name: "test_errors", Help: "Set by the test."})
	registry := prometheus.NewRegistry()
	registry.MustRegister(gauge)
	s := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(s.Close)
	return gauge, s.Listener.Addr().String()
}

// config returns the configuration of a server that scrapes targets and evaluates alerts, given by
// name and expression, ten times a second. It is YAML in the form of JSON.
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

// asker queries gates as the manager does, with the test's Secrets. The suite of the manager uses
// those of an API server.
type asker struct {
	*Prometheus

	t       *testing.T
	secrets keptSecrets
}

func newAsker(t *testing.T) *asker {
	t.Helper()
	kept := keptSecrets{known: map[string]*corev1.Secret{}}
	return &asker{Prometheus: &Prometheus{Secrets: reading.Secrets{Reader: kept, Namespace: namespace}}, t: t, secrets: kept}
}

// in returns the asker for a part of the test.
func (a *asker) in(t *testing.T) *asker {
	t.Helper()
	return &asker{Prometheus: a.Prometheus, t: t, secrets: a.secrets}
}

// keptSecrets holds Secrets by name.
type keptSecrets struct {
	client.Reader

	known map[string]*corev1.Secret
}

func (k keptSecrets) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s, ok := k.known[key.Name]
	if !ok {
		return apierrors.NewNotFound(corev1.Resource("secrets"), key.Name)
	}
	s.DeepCopyInto(object.(*corev1.Secret))
	return nil
}

// keep creates or replaces a Secret.
func (a *asker) keep(name string, keysAndValues ...string) {
	s := secret(keysAndValues...)
	s.Name, s.ResourceVersion = name, time.Now().String() // changes with each write
	a.secrets.known[name] = s
}

func (a *asker) ask(address, query, secret string) Answer {
	return a.askWithin(timeout, address, query, secret)
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

// expect repeats the query until the answer is right, because the server scrapes ten times a
// second.
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

// TestPrometheus queries a real server that scrapes a real exporter.
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
	a.expect(address, `count(ALERTS{alertname="RebootOperatorNodePending"})`, "", firing, "{} = 1") // the operator's own alert fires
	a.expect(address, alerts, "", isClear, "")                                                      // but does not count
	errors.Set(3.5)
	a.expect(address+"/", "test_errors > 2", "", firing, `= 3.5`)
	a.expect(address, alerts, "", firing, `ALERTS{alertname="TooManyErrors", alertstate="firing", instance="`+target+`", job="test"} = 1`)
	a.expect(address, "test_errors[1m]", "", firing, "= 3.5")
	a.expect(address, "scalar(test_errors) > bool 2", "", firing, "the query = 1")
	a.expect(address, "scalar(test_errors) > bool 4", "", isClear, "")
	a.expect(address, "scalar(nothing)", "", mute, "NaN")
	a.expect(address, `"text"`, "", mute, "the query returns a string")
	a.expect(address, "test_errors >", "", mute, "the query is refused: ")
	a.expect(address, "rate(nothing)", "", mute, "the query is refused: ")
	a.expect(address+"/nowhere", "up", "", mute, "the server refuses: client error: 404")
	errors.Set(0)
	a.expect(address, "test_errors > 2", "", isClear, "")
}

// Addresses change with edits of policies, so the state for each must not accumulate.
func TestPrometheus_ForgetsServers(t *testing.T) {
	p := &Prometheus{}
	for i := range 10 * most {
		if _, err := p.server(t.Context(), v1alpha1.PrometheusGate{URL: fmt.Sprintf("http://p%d.example.com", i)}); err != nil {
			t.Fatal(err)
		}
		if len(p.servers) > most {
			t.Fatalf("%d servers are remembered after %d", len(p.servers), i+1)
		}
	}
	last := v1alpha1.PrometheusGate{URL: fmt.Sprintf("http://p%d.example.com", 10*most-1)}
	first, err := p.server(t.Context(), last)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := p.server(t.Context(), last); again != first {
		t.Error("a server that is asked again is not kept")
	}
}

// A querier of several stores answers with the data of the stores that it reaches, and adds a
// warning about the others. An empty answer is then unknown.
func TestPrometheus_AnIncompleteAnswerIsNotClear(t *testing.T) {
	const warning = `"warnings": ["no StoreAPIs matched for this query: store prod-1 is down"]`
	for name, tc := range map[string]struct {
		result, warnings string
		want             v1alpha1.GateState
		message          string
	}{
		"nothing blocks":                     {`[]`, `"warnings": []`, v1alpha1.GateClear, ""},
		"nothing blocks in a partial result": {`[]`, warning, v1alpha1.GateUnreachable, "the answer may be incomplete: no StoreAPIs matched"},
		"several are down, reported in one order": {
			`[]`, `"warnings": ["store b is down", "PromQL warning: a", "store a is down"]`, v1alpha1.GateUnreachable, "the answer may be incomplete: store a is down",
		},
		"warnings about the query itself": {
			`[]`, `"warnings": ["PromQL info: metric might not be a counter, name does not end in _total", "PromQL warning: mixed"]`, v1alpha1.GateClear, "",
		},
		"VictoriaMetrics has all data":           {`[]`, `"isPartial": false`, v1alpha1.GateClear, ""},
		"VictoriaMetrics lacks some of the data": {`[]`, `"isPartial": true`, v1alpha1.GateUnreachable, "the answer may be incomplete: isPartial is true"},
		"something blocks in the available data": {`[{"metric": {"job": "api"}, "value": [1, "2"]}]`, `"isPartial": true`, v1alpha1.GateFiring, `{job="api"} = 2`},
		"something blocks in a partial result":   {`[{"metric": {"job": "api"}, "value": [1, "2"]}]`, warning, v1alpha1.GateFiring, `{job="api"} = 2`},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, err := fmt.Fprintf(w, `{"status": "success", "data": {"resultType": "vector", "result": %s}, %s}`, tc.result, tc.warnings)
				if err != nil {
					t.Error(err)
				}
			}))
			t.Cleanup(s.Close)
			got := (&Prometheus{}).Ask(t.Context(), v1alpha1.PrometheusGate{Name: "g", URL: s.URL, Query: "up == 0"})
			if got.State != tc.want || !strings.Contains(got.Message, tc.message) {
				t.Errorf("%s %q, want %s %q", got.State, got.Message, tc.want, tc.message)
			}
		})
	}
}

func secret(keysAndValues ...string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "prom", Namespace: "reboot-operator-system", UID: "u", ResourceVersion: "1"}, Data: map[string][]byte{}}
	for i := 0; i < len(keysAndValues); i += 2 {
		s.Data[keysAndValues[i]] = []byte(keysAndValues[i+1])
	}
	return s
}

// TestCredentialsOf shows what a Secret may contain, and the sentence about an invalid key. No
// sentence reveals a value.
func TestCredentialsOf(t *testing.T) {
	ca := newAuthority(t)
	certificate, key := ca.client("reboot-operator")
	_, other := ca.client("somebody-else")
	cert, priv := string(certificate), string(key)
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		// header is the header that the server receives, and wrong the error.
		header, wrong string
	}{
		"no Secret": {},
		"a token":   {secret: secret("token", "hunter2"), header: "Bearer hunter2"},
		"a token with a line break, as from a file": {secret: secret("token", "hunter2\n"), header: "Bearer hunter2"},
		"name and password":                         {secret: secret("username", "me", "password", "hunter2"), header: "Basic bWU6aHVudGVyMg=="},
		"an authority":                              {secret: secret("ca.crt", string(ca.pem))},
		"a client's certificate":                    {secret: secret("tls.crt", cert, "tls.key", priv)},
		"all of TLS and a token":                    {secret: secret("ca.crt", string(ca.pem), "tls.crt", cert, "tls.key", priv, "token", "hunter2"), header: "Bearer hunter2"},
		"nothing":                                   {secret: secret(), wrong: "Secret prom has none of the keys token, username and password, ca.crt, tls.crt and tls.key"},
		"other keys":                                {secret: secret("Token", "hunter2"), wrong: "Secret prom has none of the keys token, username and password, ca.crt, tls.crt and tls.key"},
		"an empty token":                            {secret: secret("token", ""), wrong: "Secret prom has none of the keys token, username and password, ca.crt, tls.crt and tls.key"},
		"two ways":                                  {secret: secret("token", "hunter2", "username", "me", "password", "hunter2"), wrong: "Secret prom has both token and username: keep one"},
		"a user name alone":                         {secret: secret("username", "hunter2"), wrong: "Secret prom has only one of the keys username and password: add the other one"},
		"a password alone":                          {secret: secret("password", "hunter2"), wrong: "Secret prom has only one of the keys username and password: add the other one"},
		"a certificate alone":                       {secret: secret("tls.crt", cert), wrong: "Secret prom has only one of the keys tls.crt and tls.key: add the other one"},
		"a key of another certificate":              {secret: secret("tls.crt", cert, "tls.key", string(other)), wrong: "Secret prom has no matching PEM certificate and key in keys tls.crt and tls.key"},
		"an invalid certificate":                    {secret: secret("tls.crt", "hunter2", "tls.key", "hunter2"), wrong: "Secret prom has no matching PEM certificate and key in keys tls.crt and tls.key"},
		"an invalid authority":                      {secret: secret("ca.crt", "hunter2"), wrong: "Secret prom has no PEM certificate in key ca.crt"},
		"an authority that is a key, twice":         {secret: secret("ca.crt", priv+priv), wrong: "Secret prom has no PEM certificate in key ca.crt"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := credentialsOf(tc.secret)
			if tc.wrong != "" {
				if err == nil || err.Error() != tc.wrong {
					t.Errorf("got %v, want %s", err, tc.wrong)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			sends := promhttp.RoundTripperFunc(func(r *http.Request) (*http.Response, error) {
				if got := r.Header.Get("Authorization"); got != tc.header {
					t.Errorf("got %q, want %q", got, tc.header)
				}
				return httptest.NewRecorder().Result(), nil
			})
			response, err := c.authorize(sends).RoundTrip(httptest.NewRequest(http.MethodGet, "/", http.NoBody))
			if err != nil {
				t.Fatal(err)
			}
			_ = response.Body.Close()
			if shown := c.redact("hunter2 is refused"); tc.header != "" && strings.Contains(shown, "hunter2") {
				t.Error(shown)
			}
		})
	}
}
