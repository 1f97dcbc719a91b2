package fleet

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
)

// expiry is the age at which nodes of one pool expire. They have to be granted before.
const expiry = 3 * time.Minute

// Karpenter must leave a granted node alone when it deletes equal nodes that are empty or drifted,
// until the grant has ended. Expiry ignores the operator's annotation. Then the slot must be free.
func TestKarpenter(t *testing.T) {
	program := neighbour(t, "karpenter")
	s := startTrial(t, Options{Nodes: 2})
	s.startKarpenter(program)
	s.applyPool("consolidation", 2, "Never")
	s.applyPool("drift", 2, "Never")
	s.applyPool("expiry", 1, expiry.String())
	empty, drifted, expired := s.adoptPool("consolidation", 2), s.adoptPool("drift", 2), s.adoptPool("expiry", 1)[0]
	s.kubectl("delete", "deployments", "--all", "--namespace=default", "--cascade=foreground")
	var err error
	s.policy, err = s.fleet.ApplyPolicy(t.Context(), func(spec *v1alpha1.RebootPolicySpec) {
		hold(spec)
		spec.Concurrency = &v1alpha1.Concurrency{MaxUnavailable: new(intstr.FromString("100%"))}
		spec.Autoscaler = &v1alpha1.Autoscaler{Grace: &v1alpha1.Duration{Duration: time.Second}}
	})
	s.must(err)
	s.stageAndHold(empty[0], drifted[0], expired)

	s.kubectl("patch", "nodepool", "consolidation", "--type=merge", `--patch={"spec":{"disruption":{"consolidateAfter":"0s"}}}`)
	s.await("consolidation to delete the empty node without a grant", func() bool { return s.gone(empty[1].Name) })
	s.kubectl("patch", "nodepool", "drift", "--type=merge", `--patch={"spec":{"template":{"metadata":{"labels":{"example.com/changed":"true"}}}}}`)
	s.await("drift to delete the node without a grant", func() bool { return s.gone(drifted[1].Name) })
	s.must(embedded.Await(t.Context(), "expiry to delete the granted node", expiry+patience, s.fleet.Err, func(context.Context) bool { return s.gone(expired.Name) }))
	for _, h := range []*Host{empty[0], drifted[0]} {
		if s.gone(h.Name) {
			t.Fatalf("Karpenter has deleted %s, which has a grant", h.Name)
		}
		if n := s.node(h.Name); disrupted(n) || !n.Spec.Unschedulable {
			t.Errorf("Karpenter disrupts %s, which has a grant: taints %v, deleted %v, cordoned %t", h.Name, n.Spec.Taints, n.DeletionTimestamp, n.Spec.Unschedulable)
		}
	}
	s.await("the slot of the expired node to be free", func() bool { return len(s.status().Grants) == 2 })

	s.kubectl("uncordon", empty[0].Name, drifted[0].Name)
	s.await("Karpenter to delete both once their grants have ended", func() bool { return s.gone(empty[0].Name) && s.gone(drifted[0].Name) })
}

// startKarpenter starts Karpenter with the provider whose nodes kwok simulates.
func (s *trial) startKarpenter(program string) {
	s.Helper()
	c := s.fleet.Cluster
	s.must(c.Apply(s.Context(), filepath.Join(filepath.Dir(program), "crds")))
	s.must(c.AwaitKinds(s.Context()))
	kubeconfig, err := c.UserKubeconfig("karpenter", "system:masters")
	s.must(err)
	s.start(process.Program{Name: "karpenter", Path: program, Env: []string{
		"KUBECONFIG=" + kubeconfig, "DISABLE_LEADER_ELECTION=true", "METRICS_PORT=0", "HEALTH_PROBE_PORT=0",
	}})
}

// nodePool is a NodePool with a name, a number of nodes and their expireAfter. Each pod of its
// Deployment needs its own node.
const nodePool = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: simulated}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: %[1]s}
spec:
  template:
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: simulated}
      requirements:
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: kubernetes.io/arch, operator: In, values: [amd64]}
      expireAfter: %[3]s
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: Never
    budgets: [{nodes: "100%%"}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: %[1]s, namespace: default}
spec:
  replicas: %[2]d
  selector: {matchLabels: {app: %[1]s}}
  template:
    metadata: {labels: {app: %[1]s}}
    spec:
      nodeSelector: {karpenter.sh/nodepool: %[1]s}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: %[1]s}}}
      containers: [{name: guest, image: example.com/guest}]
`

// applyPool applies a NodePool, and pods that need the given number of nodes.
func (s *trial) applyPool(name string, nodes int, expireAfter string) {
	s.Helper()
	s.must(s.fleet.Cluster.ApplyManifest(s.Context(), fmt.Appendf(nil, nodePool, name, nodes, expireAfter)))
}

// adoptPool waits for the nodes of a NodePool, and puts machines behind them.
func (s *trial) adoptPool(name string, count int) []*Host {
	s.Helper()
	var nodes []corev1.Node
	s.await("Karpenter to make the nodes of pool "+name, func() bool {
		list, err := s.fleet.Cluster.Client().CoreV1().Nodes().List(s.Context(), metav1.ListOptions{
			LabelSelector: "karpenter.sh/initialized=true,karpenter.sh/nodepool=" + name,
		})
		s.must(err)
		nodes = list.Items
		return len(nodes) == count
	})
	var hosts []*Host
	for i := range nodes {
		hosts = append(hosts, s.adopt(nodes[i].Name))
	}
	return hosts
}
