package fleet

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
)

// steadfast is a pod on each node that may not be evicted while its budget is there.
const steadfast = `
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

// path are the states of a reboot that nothing goes wrong with, in order.
var path = []timeline.State{
	timeline.UpToDate, timeline.Waiting, timeline.Granted, timeline.Draining, timeline.Rebooting, timeline.Settling, timeline.Back,
}

func TestRollout_OfTheAgentsInMidDrainReleasesNoSlotAndUncordonsNobody_Behaviour64(t *testing.T) {
	f := start(t, Options{Nodes: 2, Workload: []byte(steadfast)})
	policy, err := f.ApplyPolicy(t.Context(), func(spec *v1alpha1.RebootPolicySpec) {
		spec.Settle, spec.Drain = &metav1.Duration{}, heldUp()
	})
	must(t, err)
	await := func(what string, done func() bool) {
		t.Helper()
		must(t, f.Await(t.Context(), what, done))
	}
	kubectl := func(args ...string) {
		t.Helper()
		_, err := f.Cluster.Kubectl(t.Context(), nil, args...)
		must(t, err)
	}
	in := func(state timeline.State) []string {
		var names []string
		for _, v := range f.views() {
			if v.State == state {
				names = append(names, v.Node)
			}
		}
		return names
	}
	begun := func(node string) *protocol.Progress {
		t.Helper()
		object, err := f.Cluster.Client().CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		must(t, err)
		progress, err := protocol.ParseProgress(object.Annotations)
		must(t, err)
		return progress
	}

	must(t, f.Stage())
	await("a drain", func() bool { return len(in(timeline.Draining)) == 1 })
	draining := in(timeline.Draining)[0]
	before := begun(draining)
	await("it to be blocked", func() bool { return f.conditionOf(t, draining, corev1.NodeDrainInProgress) == corev1.ConditionTrue })
	agents := f.pids()
	kubectl("rollout", "restart", "daemonset/reboot-operator-agent", "--namespace="+namespace)
	kubectl("rollout", "status", "daemonset/reboot-operator-agent", "--namespace="+namespace, "--timeout=60s")
	await("the new agents to run", func() bool { return len(f.Agents()) == 2 })
	if again := f.pids(); slices.ContainsFunc(again, func(pid int) bool { return slices.Contains(agents, pid) }) {
		t.Fatalf("agents %v are still of %v: nothing was rolled", again, agents)
	}
	status, err := policy.Status(t.Context())
	must(t, err)
	if after := begun(draining); len(status.Grants) != 1 || after == nil || *after.DrainStartedAt != *before.DrainStartedAt {
		t.Errorf("%d grants, and progress %v instead of %v", len(status.Grants), after, before)
	}

	kubectl("delete", "poddisruptionbudget", "db", "--namespace=default")
	await("both to be back", func() bool { return policy.Finished(t.Context()) })
	expectRights(t, f)
	f.Recorder.Read(func(line *timeline.Timeline) {
		if peak := line.Peak().Nodes; len(peak) != 1 {
			t.Errorf("%v were unavailable at once", peak)
		}
		at := map[string]int{}
		for _, c := range line.Changes(0) {
			step := slices.Index(path, c.To)
			if step < at[c.Node] {
				t.Errorf("%s went from %s to %s: %s", c.Node, c.From, c.To, c.Why)
			}
			at[c.Node] = step
		}
		for _, v := range line.Views() {
			if v.Reboots != 1 || v.Cordoned {
				t.Errorf("%s was rebooted %d times, cordoned: %t", v.Node, v.Reboots, v.Cordoned)
			}
		}
	})
}

// heldUp begins to drain although a budget allows nothing: with Abort the node would wait before its drain.
func heldUp() *v1alpha1.Drain { return &v1alpha1.Drain{OnTimeout: v1alpha1.DrainTimeoutReboot} }

// views are all nodes as they are now.
func (f *Fleet) views() (views []timeline.View) {
	f.Recorder.Read(func(line *timeline.Timeline) { views = line.Views() })
	return views
}

// pids are those of the running agents.
func (f *Fleet) pids() []int {
	var pids []int
	for _, p := range f.Agents() {
		pids = append(pids, p.Pid())
	}
	return pids
}

// conditionOf is the status of a node's condition.
func (f *Fleet) conditionOf(t *testing.T, node string, kind corev1.NodeConditionType) corev1.ConditionStatus {
	t.Helper()
	object, err := f.Cluster.Client().CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
	must(t, err)
	for _, c := range object.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return corev1.ConditionUnknown
}
