package fleet

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
)

// rolledWorkload is a shop whose pods may not be disrupted, so that drains last until the test
// allows it. Its policy is a dry run, so that the manager creates the agents before the test
// begins.
const rolledWorkload = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: default}
spec:
  replicas: 3
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers: [{name: shop, image: example.com/shop}]
      topologySpreadConstraints:
      - {topologyKey: kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: shop}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: shop, namespace: default}
spec:
  maxUnavailable: 0
  selector: {matchLabels: {app: shop}}
---
apiVersion: reboot-operator.io/v1alpha1
kind: RebootPolicy
metadata: {name: look}
spec: {mode: DryRun}
`

// agentPods is the label selector of the agents' pods.
const agentPods = "app.kubernetes.io/component=agent"

// path lists the states of a successful reboot in order.
var path = []timeline.State{
	timeline.UpToDate, timeline.Waiting, timeline.Granted, timeline.Draining, timeline.Rebooting, timeline.Settling, timeline.Back,
}

// rollout is a fleet of three machines whose agents are replaced while two of them drain.
type rollout struct{ *trial }

func newRollout(t *testing.T) *rollout {
	t.Helper()
	o := Options{Nodes: 3, Components: []string{"manage-agents"}, Workload: []byte(rolledWorkload)}
	r := &rollout{newTrial(t, o, func(spec *v1alpha1.RebootPolicySpec) {
		spec.Priority = 10
		spec.NodeSelector = onNodes("node-1", "node-2", "node-3")
		two := intstr.FromInt32(2)
		spec.Concurrency = &v1alpha1.Concurrency{MaxUnavailable: &two}
		spec.Reboot = &v1alpha1.Reboot{Settle: &v1alpha1.Duration{}}
		spec.Drain = &v1alpha1.Drain{OnTimeout: v1alpha1.DrainTimeoutReboot} // with Abort, a failed node would wait before its next drain
	})}
	t.Cleanup(r.story)
	return r
}

// story logs what happened if the test has failed.
func (r *rollout) story() {
	if r.Failed() {
		for _, c := range r.fleet.Recorder.Read().Changes {
			r.Logf("%s %s: %s, %s", c.At.Format("15:04:05.000"), c.Node, c.To, c.Why)
		}
	}
}

func onNodes(names ...string) *v1alpha1.LabelSelector {
	return &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelSelectorRequirement{
		{Key: corev1.LabelHostname, Operator: metav1.LabelSelectorOpIn, Values: names},
	}}
}

// A manager that manages its agents replaces them during drains. No slot may be released, and no
// node uncordoned.
func TestManageAgents_RolledInMidDrain_Behaviour64(t *testing.T) {
	r := newRollout(t)
	draining := r.drain()
	begun := r.begun(draining)
	before := r.agents()

	// In an upgrade, the managers are replaced, and the new leader replaces the agents.
	args := r.kubectl("get", "deployment", "-n", namespace, "reboot-operator-manager", "-o", "jsonpath={.spec.template.spec.containers[0].args}")
	args = strings.Replace(args, "ghcr.io/reboot-operator/agent:unreleased", "ghcr.io/reboot-operator/agent:next", 1)
	r.kubectl("patch", "deployment", "-n", namespace, "reboot-operator-manager", "--type=json", "-p",
		`[{"op":"replace","path":"/spec/template/spec/containers/0/args","value":`+args+`}]`)
	r.await("new agents on all nodes", func() bool { return r.replaced(before, "ghcr.io/reboot-operator/agent:next") })
	r.stillDraining(draining, begun)

	// The selector no longer selects a draining node, but its agent has to finish.
	before = r.agents()
	node := draining[0].Node
	others := slices.DeleteFunc([]string{"node-1", "node-2", "node-3"}, func(name string) bool { return name == node })
	r.kubectl("delete", "rbp", "look")
	r.kubectl("patch", "rbp", r.policy.Name, "--type=merge", "-p",
		fmt.Sprintf(`{"spec":{"nodeSelector":{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":[%q,%q]}]}}}`, others[0], others[1]))
	r.await("new agents once more", func() bool {
		return strings.Contains(r.affinity(), `"metadata.name","operator":"In","values":["`+node+`"]`) && r.replaced(before, "ghcr.io/reboot-operator/agent:next")
	})
	r.stillDraining(draining, begun)

	r.finish()
	r.await("the agent that nobody selects to go", func() bool { return r.agents()[node] == "" && len(r.agents()) == 2 })
	r.kubectl("delete", "rbp", r.policy.Name)
	r.await("all agents to go with the last policy", func() bool { return len(r.agents()) == 0 && len(r.fleet.Agents()) == 0 })
	_, err := r.fleet.Cluster.Client().AppsV1().DaemonSets(namespace).Get(t.Context(), "reboot-operator-agent", metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the DaemonSet is left: %v", err)
	}
}

// drain requests the reboots, and returns the ledger when two nodes drain.
func (r *rollout) drain() []v1alpha1.LedgerEntry {
	r.Helper()
	r.must(r.fleet.Stage())
	r.await("two nodes to drain", func() bool { return len(r.in(timeline.Draining)) == 2 })
	grants := r.status().Grants
	if len(grants) != 2 {
		r.Fatalf("the ledger has %v, want two entries", grants)
	}
	return grants
}

// begun returns when the drain of each node began.
func (r *rollout) begun(grants []v1alpha1.LedgerEntry) map[string]string {
	r.Helper()
	began := map[string]string{}
	for _, e := range grants {
		progress, err := protocol.ParseProgress(r.node(e.Node).Annotations)
		r.must(err)
		began[e.Node] = progress.DrainStartedAt.String()
	}
	return began
}

// stillDraining checks that the same nodes are cordoned and in the same drains, under the same
// grants.
func (r *rollout) stillDraining(grants []v1alpha1.LedgerEntry, begun map[string]string) {
	r.Helper()
	if diff := cmp.Diff(grants, r.status().Grants); diff != "" {
		r.Errorf("the ledger (-before +now):\n%s", diff)
	}
	if got := r.in(timeline.Draining); len(got) != 2 {
		r.Errorf("%v drain, want two nodes", got)
	}
	if diff := cmp.Diff(begun, r.begun(grants)); diff != "" {
		r.Errorf("the drains began (-before +now):\n%s", diff)
	}
}

// finish lets the drains continue, waits until everything is done, and checks the history.
func (r *rollout) finish() {
	r.Helper()
	r.kubectl("delete", "poddisruptionbudget", "-n", "default", "shop")
	r.awaitFinished()
	expectRights(r.T, r.fleet)
	changes := r.fleet.Recorder.Read()
	for _, v := range changes.Views {
		if v.Reboots != 1 || v.Cordoned {
			r.Errorf("%s was rebooted %d times and is cordoned: %t", v.Node, v.Reboots, v.Cordoned)
		}
	}
	index := map[string]int{}
	for _, c := range changes.Changes {
		step := slices.Index(path, c.To)
		if step < index[c.Node] {
			r.Errorf("%s went from %s to %s: %s", c.Node, c.From, c.To, c.Why)
		}
		index[c.Node] = step
	}
}

// in returns the names of the nodes in a state.
func (r *rollout) in(state timeline.State) []string {
	var names []string
	for _, v := range r.fleet.Recorder.Read().Views {
		if v.State == state {
			names = append(names, v.Node)
		}
	}
	return names
}

// agents returns the running agents' pods, by node.
func (r *rollout) agents() map[string]string {
	agents := map[string]string{}
	for _, pod := range r.pods(namespace, agentPods) {
		alive := slices.ContainsFunc(r.fleet.Agents(), func(p *process.Process) bool { return p.Name == pod.Name })
		if alive && pod.DeletionTimestamp == nil {
			agents[pod.Spec.NodeName] = pod.Name
		}
	}
	return agents
}

// replaced reports whether each node has a new agent that runs the given image.
func (r *rollout) replaced(before map[string]string, image string) bool {
	now := r.agents()
	for node, was := range before {
		if now[node] == "" || now[node] == was {
			return false
		}
	}
	return !slices.ContainsFunc(r.pods(namespace, agentPods), func(pod corev1.Pod) bool { return pod.Spec.Containers[0].Image != image })
}

func (r *rollout) affinity() string {
	r.Helper()
	return r.kubectl("get", "daemonset", "-n", namespace, "reboot-operator-agent", "-o", "jsonpath={.spec.template.spec.affinity}")
}
