package gate

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// apiServer serves responses by path and continue token. Everything else is not found.
type apiServer map[string]string

func (s apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	key := r.URL.Path
	if token := r.URL.Query().Get("continue"); token != "" {
		key += "?" + token
	}
	answer, ok := s[key]
	switch {
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
	case answer == "hangs":
		<-r.Context().Done()
		return
	case strings.Contains(answer, `"code":403`):
		w.WriteHeader(http.StatusForbidden)
	}
	_, _ = fmt.Fprint(w, answer)
}

const volumes = `/apis/longhorn.io/v1beta2/namespaces/longhorn/volumes`

func newAPIServer() apiServer {
	return apiServer{
		"/apis/longhorn.io/v1beta2": `{"kind":"APIResourceList","groupVersion":"longhorn.io/v1beta2","resources":[
			{"name":"volumes/status","kind":"Volume","namespaced":true},{"name":"volumes","kind":"Volume","namespaced":true},{"name":"pools","kind":"Pool"}]}`,
		volumes + "/a":                     volume("a", "healthy"),
		volumes + "/b":                     volume("b", "degraded"),
		volumes + "/forbidden":             `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`,
		volumes + "/slow":                  "hangs",
		volumes + "/long":                  `{"kind":"Volume","apiVersion":"longhorn.io/v1beta2","metadata":{"name":"` + strings.Repeat("x", largest) + `"}}`,
		volumes:                            listOf("more", volume("z", "degraded"), volume("a", "healthy")),
		volumes + "?more":                  listOf("", volume("b", "degraded")),
		"/apis/longhorn.io/v1beta2/pools":  listOf(""),
		"/apis/longhorn.io/v1beta2/pools/": listOf(""),
	}
}

func volume(name, robustness string) string {
	return fmt.Sprintf(`{"kind":"Volume","apiVersion":"longhorn.io/v1beta2","metadata":{"name":%q,"namespace":"longhorn"},"status":{"robustness":%q,"replicas":3}}`, name, robustness)
}

func listOf(next string, items ...string) string {
	return fmt.Sprintf(`{"kind":"List","apiVersion":"longhorn.io/v1beta2","metadata":{"continue":%q},"items":[%s]}`, next, strings.Join(items, ","))
}

// TestObjects shows which objects are read from an API server, and each way in which that fails.
func TestObjects(t *testing.T) {
	const healthy = "object.status.robustness == 'healthy'"
	const notReady = v1alpha1.GateNotReady
	gate := func(name, expression string) v1alpha1.ObjectGate {
		return v1alpha1.ObjectGate{APIVersion: "longhorn.io/v1beta2", Kind: "Volume", Namespace: "longhorn", Name: name, Expression: expression}
	}
	all := gate("", healthy)
	all.Selector = &v1alpha1.LabelSelector{}
	edited := func(g v1alpha1.ObjectGate, edit func(*v1alpha1.ObjectGate)) v1alpha1.ObjectGate {
		edit(&g)
		return g
	}
	for name, tc := range map[string]struct {
		gate  v1alpha1.ObjectGate
		state v1alpha1.GateState
		want  string
	}{
		"true":                         {gate("a", healthy), isClear, ""},
		"false":                        {gate("b", healthy), notReady, "Volume longhorn/b: the expression is false"},
		"functions of Kubernetes":      {gate("a", "object.?status.?robustness.orValue('').find('^h') == 'h' && quantity('1Gi').isGreaterThan(quantity('1Mi'))"), isClear, ""},
		"each of several pages counts": {all, notReady, "Volume longhorn/b: the expression is false"},
		"all are true":                 {edited(all, func(g *v1alpha1.ObjectGate) { g.Expression = "object.status.replicas == 3" }), isClear, ""},
		"none is selected": {
			edited(all, func(g *v1alpha1.ObjectGate) { g.Kind, g.Namespace = "Pool", "" }), mute, "no object matches Pool *, but a gate needs at least one",
		},
		"a missing object": {gate("gone", healthy), mute, "Volume longhorn/gone does not exist"},
		"a missing kind":   {edited(all, func(g *v1alpha1.ObjectGate) { g.Kind = "Engine" }), mute, "the API server does not know kind Engine of longhorn.io/v1beta2"},
		"a missing group":  {edited(all, func(g *v1alpha1.ObjectGate) { g.APIVersion = "ceph.rook.io/v1" }), mute, "the API server does not know kind Volume of ceph.rook.io/v1"},
		"a forbidden object": {
			gate("forbidden", healthy), mute, "reading Volume longhorn/forbidden is forbidden: give a ClusterRole with verb get, resource volumes and API group longhorn.io " +
				"the label rbac.reboot-operator.io/aggregate-to-manager=true",
		},
		"a slow server":                           {gate("slow", healthy), mute, "reading Volume longhorn/slow: no answer within 10s"},
		"an object that is too big":               {gate("long", healthy), mute, "the answer is longer than 4 MiB: select smaller objects"},
		"no namespace":                            {edited(gate("a", healthy), func(g *v1alpha1.ObjectGate) { g.Namespace = "" }), mute, "Volume of longhorn.io/v1beta2 is namespaced: set namespace"},
		"a namespace for a cluster-scoped object": {edited(gate("a", healthy), func(g *v1alpha1.ObjectGate) { g.Kind = "Pool" }), mute, "Pool of longhorn.io/v1beta2 is not namespaced: remove namespace"},
		"a field that is missing":                 {gate("a", "object.status.state == 'attached'"), mute, "Volume longhorn/a: the expression fails: no such key: state"},
		"neither true nor false":                  {gate("a", "object.status.robustness"), mute, "Volume longhorn/a: the value of the expression has type string, and must be true or false"},
		"no expression":                           {gate("a", "objekt.status"), mute, "the expression does not compile: line 1, column 1: undeclared reference to 'objekt'"},
		"an expression that never ends": {
			gate("a", "['a','b','c','d','e','f','g','h','i','j'].all(a, "+strings.Repeat("[1,2,3,4,5,6,7,8,9,10].all(x, ", 6)+"object.status.replicas == 3"+strings.Repeat(")", 7)), mute,
			"Volume longhorn/a: the expression fails: operation cancelled: actual cost limit exceeded",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(newAPIServer())
			t.Cleanup(server.Close)
			objects, err := NewObjects(&rest.Config{Host: server.URL})
			if err != nil {
				t.Fatal(err)
			}
			limit := time.Minute
			if tc.gate.Name == "slow" {
				limit = 100 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			if a := objects.Ask(ctx, tc.gate); a.State != tc.state || !strings.Contains(a.Message, tc.want) || a.Message == "" != (tc.want == "") {
				t.Errorf("got %s %q, want %s %q", a.State, a.Message, tc.state, tc.want)
			}
		})
	}
}

// TestObjects_TooMany shows that a selector that matches a whole cluster is not read to its end.
func TestObjects_TooMany(t *testing.T) {
	many := make([]string, mostObjects/2+1)
	for i := range many {
		many[i] = volume(fmt.Sprintf("v%d", i), "healthy")
	}
	s := newAPIServer()
	s[volumes], s[volumes+"?more"], s[volumes+"?end"] = listOf("more", many...), listOf("end", many...), "hangs"
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	objects, err := NewObjects(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	g := v1alpha1.ObjectGate{APIVersion: "longhorn.io/v1beta2", Kind: "Volume", Namespace: "longhorn", Selector: &v1alpha1.LabelSelector{}, Expression: "true"}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if a := objects.Ask(ctx, g); a.State != mute || a.Message != "the selector matches more than 1000 of Volume longhorn/*: narrow it" {
		t.Errorf("got %s %q", a.State, a.Message)
	}
}

// TestExpression_Budget shows that the total cost of a query's evaluations is limited.
func TestExpression_Budget(t *testing.T) {
	e, err := compile("[1, 2, 3].all(x, object.replicas != x)")
	if err != nil {
		t.Fatal(err)
	}
	e.remaining = 30
	object := map[string]any{"replicas": int64(9)}
	if met, err := e.eval(t.Context(), object); err != nil || !met {
		t.Fatalf("the first object: %t, %v", met, err)
	}
	if _, err := e.eval(t.Context(), object); err == nil || !strings.Contains(err.Error(), "costs too much for so many objects") {
		t.Errorf("the second object, with %d left: %v", e.remaining, err)
	}
}

// TestEvaluator_Invalid shows that an invalid expression is reported with its position before a
// node waits for it.
func TestEvaluator_Invalid(t *testing.T) {
	e := NewEvaluator(nil, nil, nil, Interval)
	spec := func(expressions ...string) *v1alpha1.RebootPolicySpec {
		s := &v1alpha1.RebootPolicySpec{Gates: &v1alpha1.Gates{}}
		for _, e := range expressions {
			s.Gates.Objects = append(s.Gates.Objects, v1alpha1.ObjectGate{Expression: e})
		}
		return s
	}
	for _, tc := range []struct {
		spec *v1alpha1.RebootPolicySpec
		want string
	}{
		{&v1alpha1.RebootPolicySpec{}, ""},
		{spec("object.spec.ready", "has(object.status) && object.status.ready"), ""},
		{spec("true", "object.status ="), "spec.gates.objects[1].expression does not compile: line 1, column 15: Syntax error: "},
		{spec("true &&\n  objekt.ready"), "spec.gates.objects[0].expression does not compile: line 2, column 3: undeclared reference to 'objekt'"},
		{spec("object.metadata.name + 'x'"), "spec.gates.objects[0].expression does not compile: its value has type "},
		{spec("size(object.items)"), "spec.gates.objects[0].expression does not compile: its value has type int, and must be true or false"},
	} {
		for range 2 { // the second result comes from the cache
			if got := e.Invalid(tc.spec); !strings.HasPrefix(got, tc.want) || got == "" != (tc.want == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		}
	}
}
