// Package rules is a policy that sets every rule there is, and plays whoever the rules ask: hooks, a Prometheus server, and a service
// that is notified. With it the benchmark measures what rules cost.
package rules

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

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
func Spec(server *httptest.Server, slots int, first string) v1alpha1.RebootPolicySpec {
	limit, hook := intstr.FromInt32(int32(slots)), []v1alpha1.AnnotationKey{Answer}
	duration := func(d time.Duration) *metav1.Duration { return &metav1.Duration{Duration: d} }
	return v1alpha1.RebootPolicySpec{
		Urgent: &v1alpha1.Urgent{
			Until: metav1.NewTime(time.Now().Add(24 * time.Hour)), Reason: "a benchmark",
			Ignore: []v1alpha1.UrgentIgnore{v1alpha1.UrgentIgnoresWindows, v1alpha1.UrgentIgnoresBlackouts, v1alpha1.UrgentIgnoresPause},
		},
		Requests:    &v1alpha1.Requests{Urgent: v1alpha1.UrgentRequestsAllow, MaxUptime: duration(87600 * time.Hour)},
		Concurrency: &v1alpha1.Concurrency{MaxUnavailable: &limit, Spacing: duration(Spacing), Shared: limiting},
		Order: []v1alpha1.Ring{{
			Name: "first", NodeSelector: v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{corev1.LabelHostname: first}},
			MaxUnavailable: &limit, Soak: duration(0),
		}},
		Deadline:   &v1alpha1.Deadline{After: *duration(time.Hour), Action: v1alpha1.DeadlineIgnoresWindows},
		Drain:      &v1alpha1.Drain{LeadTime: duration(2 * time.Second), ExcludeFromLoadBalancers: true},
		Settle:     duration(0),
		Autoscaler: &v1alpha1.Autoscaler{Grace: duration(time.Second)},
		Hooks:      &v1alpha1.Hooks{Before: hook, After: hook, RunBefore: hook, RunAfter: hook, Timeout: duration(time.Hour)},
		Gates: &v1alpha1.Gates{
			BlockingPods: []v1alpha1.BlockingPod{{
				PodSelector: v1alpha1.LabelSelector{MatchLabels: map[string]v1alpha1.LabelValue{"app": "batch"}}, Meanwhile: corev1.TaintEffectNoSchedule,
			}},
			Prometheus: []v1alpha1.PrometheusGate{{Name: "alerts", URL: server.URL, Query: "ALERTS"}},
			Objects:    []v1alpha1.ObjectGate{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "storage", Expression: "object.data.health == 'ok'"}},
		},
		Notify: []v1alpha1.Notification{{
			SecretRef: v1alpha1.SecretReference{Name: "chat"}, Template: "{event} {policy} {node}: {text}",
			Events: []v1alpha1.NotifyEvent{
				v1alpha1.NotifyStarted, v1alpha1.NotifyFinished, v1alpha1.NotifyFailed, v1alpha1.NotifyHalted,
				v1alpha1.NotifyUrgent, v1alpha1.NotifyDeadline, v1alpha1.NotifyRebooting, v1alpha1.NotifyBack,
			},
		}},
	}
}
