// Package rules is a policy that sets every rule there is, and plays whoever the rules ask: hooks, a Prometheus server, and a service
// that is notified. With it the benchmark measures what rules cost.
package rules

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const (
	// Spacing is the shortest that there is.
	Spacing = time.Minute
	// Setting states what is set, for the readers of the figures.
	Setting = "two rings without a soak, `drain.leadTime: 2s`, `drain.excludeFromLoadBalancers`, `autoscaler.grace: 1s`, hooks of nodes and of the run " +
		"that approve at once, gates of pods, of an object and of a Prometheus server that is played, a limit shared with another policy, `deadline`, " +
		"`maxUptime`, `urgent`, messages for every event"
	// Answer is the annotation in which hooks answer.
	Answer = "example.com/answered"
	// limiting is the policy whose limit counts, too.
	limiting = "limiting"
)

// Serve begins to play the Prometheus server, no query of which has a result, and the service that is notified.
func Serve() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/v1/") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
		}
	}))
}

// Objects is a manifest of what the spec names, for so many slots: the policy with the limit, the object that is a gate, with the right to
// read it, and the address of the service.
func Objects(server *httptest.Server, slots int) []byte {
	return fmt.Appendf(nil, `apiVersion: reboot-operator.io/v1alpha1
kind: RebootPolicy
metadata: {name: %s}
spec: {nodeSelector: {matchLabels: {example.com/pool: none}}, concurrency: {maxUnavailable: %d}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: storage, namespace: default}
data: {health: ok}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: storage-gate, labels: {%s: "true"}}
rules:
- {apiGroups: [""], resources: [configmaps], resourceNames: [storage], verbs: [get]}
---
apiVersion: v1
kind: Secret
metadata: {name: chat, namespace: reboot-operator-system}
stringData: {url: "generic://%s/?disabletls=yes"}
`, limiting, slots, v1alpha1.LabelAggregateToManager, server.Listener.Addr())
}

// Spec sets every rule, for so many slots. First is the node that is a ring of its own.
func Spec(server *httptest.Server, slots int, first string) (spec v1alpha1.RebootPolicySpec) {
	text := fmt.Appendf(nil, `
urgent: {until: %[1]q, reason: a benchmark, ignore: [Windows, Blackouts, Pause]}
requests: {urgent: Allow, maxUptime: 87600h}
concurrency: {maxUnavailable: %[2]d, spacing: %[3]s, shared: %[4]s}
order:
- {name: first, nodeSelector: {matchLabels: {kubernetes.io/hostname: %[5]q}}, maxUnavailable: %[2]d, soak: 0s}
deadline: {after: 1h, action: IgnoreWindows}
drain: {leadTime: 2s, excludeFromLoadBalancers: true}
settle: 0s
autoscaler: {grace: 1s}
hooks: {before: [%[6]s], after: [%[6]s], runBefore: [%[6]s], runAfter: [%[6]s], timeout: 1h}
gates:
  blockingPods: [{podSelector: {matchLabels: {app: batch}}, meanwhile: NoSchedule}]
  prometheus: [{name: alerts, url: %[7]q, query: ALERTS}]
  objects: [{apiVersion: v1, kind: ConfigMap, namespace: default, name: storage, expression: "object.data.health == 'ok'"}]
notify:
- secretRef: {name: chat}
  template: "{event} {policy} {node}: {text}"
  events: [Started, Finished, Failed, Halted, Urgent, Deadline, Rebooting, Back]
`, time.Now().Add(24*time.Hour).UTC().Format(time.RFC3339), slots, Spacing, limiting, first, Answer, server.URL)
	if err := yaml.UnmarshalStrict(text, &spec); err != nil {
		panic(err) // the text is this one
	}
	return spec
}
