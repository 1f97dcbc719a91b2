package embedded_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// children are the process IDs whose parent is this test, zombies left out.
func children(t *testing.T) []string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // It has ended meanwhile.
		}
		// pid (name) state ppid …; the name may have spaces and parentheses of its own.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		if fields[1] == strconv.Itoa(os.Getpid()) && fields[0] != "Z" {
			found = append(found, string(text[:bytes.LastIndexByte(text, ')')+1]))
		}
	}
	return found
}

func leavesNothing(t *testing.T, dir string) {
	t.Helper()
	if left := children(t); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	if _, err := os.Stat(dir); dir != "" && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder %s is left (%v)", dir, err)
	}
	left, err := filepath.Glob(filepath.Join("/dev/shm", fmt.Sprintf("reboot-operator.%d.*", os.Getpid())))
	if err != nil || len(left) > 0 {
		t.Errorf("data is left: %v %v", left, err)
	}
}

func TestCluster(t *testing.T) {
	c, err := embedded.Start(t.Context(), embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Stop()
		leavesNothing(t, c.Dir)
	})
	if got := len(children(t)); got != 5 {
		t.Errorf("%d programs run, want 5: %v", got, children(t))
	}
	if err := c.AddNode(t.Context(), "n1", map[string]string{"zone": "a"}); err != nil {
		t.Fatal(err)
	}
	t.Run("a machine that is power-cycled is seen down, then up on a new boot ID", func(t *testing.T) { powerCycle(t, c) })
	t.Run("a Deployment's pods run, and a bound token is its pod's and its node's", func(t *testing.T) { boundToken(t, c) })
	t.Run("the audit log counts requests by user, verb and resource", func(t *testing.T) { audited(t, c) })
	t.Run("a kustomization is applied, and its kinds are served", func(t *testing.T) {
		if err := c.Apply(t.Context(), filepath.Join(testenv.Root(), "config", "crd")); err != nil {
			t.Fatal(err)
		}
		if err := c.AwaitKinds(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Kubectl(t.Context(), nil, "get", "rebootpolicies"); err != nil {
			t.Error(err)
		}
	})
	t.Run("a cluster that is cleared is as it was", func(t *testing.T) { clears(t, c) })
	if err := c.Err(); err != nil {
		t.Error(err)
	}
}

// clears brings more of what there is already, and a ClusterRole.
func clears(t *testing.T, c *embedded.Cluster) {
	t.Helper()
	brought := []byte(`
{apiVersion: v1, kind: Namespace, metadata: {name: brought}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: brought}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: brought, namespace: brought}
spec:
  selector: {matchLabels: {app: brought}}
  template: {metadata: {labels: {app: brought}}, spec: {containers: [{name: x, image: example.com/x}]}}
`)
	if err := c.ApplyManifest(t.Context(), brought); err != nil {
		t.Fatal(err)
	}
	if err := c.Clear(t.Context(), brought); err != nil {
		t.Fatal(err)
	}
	left, err := c.Kubectl(t.Context(), nil, "get", "clusterrole/brought", "--ignore-not-found", "--output=name")
	if err != nil || left != "" {
		t.Errorf("%v, %s is left", err, left)
	}
	left, err = c.Kubectl(t.Context(), nil, "get", "nodes,namespaces,crd,pods,deployments,daemonsets,replicasets", "--all-namespaces", "--output=name")
	if want := "namespace/default\nnamespace/kube-node-lease\nnamespace/kube-public\nnamespace/kube-system\n"; err != nil || left != want {
		t.Errorf("%v, left are %q, want %q", err, left, want)
	}
}

func powerCycle(t *testing.T, c *embedded.Cluster) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "boot_id")
	m, err := embedded.NewMachine(t.Context(), c, "n1", file)
	if err != nil {
		t.Fatal(err)
	}
	nodes := c.Client().CoreV1().Nodes()
	before, err := nodes.Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sameBoot(t, file, before)
	revisions, err := nodes.Watch(t.Context(), metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer revisions.Stop()
	if err := m.PowerCycle(t.Context(), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	down := false
	for event := range revisions.ResultChan() {
		node := event.Object.(*corev1.Node)
		down = down || !embedded.NodeIsReady(node)
		if node.Status.NodeInfo.BootID == before.Status.NodeInfo.BootID {
			continue
		}
		if !down || !embedded.NodeIsReady(node) {
			t.Errorf("seen down: %t, Ready on the new boot ID: %t", down, embedded.NodeIsReady(node))
		}
		sameBoot(t, file, node)
		return
	}
	t.Error("no new boot ID was seen")
}

func sameBoot(t *testing.T, file string, node *corev1.Node) {
	t.Helper()
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if want := node.Status.NodeInfo.BootID + "\n"; want == "\n" || string(got) != want {
		t.Errorf("boot ID file has %q, the node %q", got, want)
	}
}

const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {embedded.reboot-operator.io/start: 10ms}}
    spec:
      containers: [{name: web, image: example.com/web}]
`

func boundToken(t *testing.T, c *embedded.Cluster) {
	t.Helper()
	if err := c.ApplyManifest(t.Context(), []byte(deployment)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Kubectl(t.Context(), nil, "rollout", "status", "deployment/web", "--timeout=30s"); err != nil {
		t.Fatal(err)
	}
	pods, err := c.Client().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil || len(pods.Items) != 2 {
		t.Fatalf("%d pods, %v", len(pods.Items), err)
	}
	token, err := c.Token(t.Context(), "default", "default", &pods.Items[0])
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	path, err := c.KubeconfigFor("web", file)
	if err != nil {
		t.Fatal(err)
	}
	who, err := c.Kubectl(t.Context(), nil, "--kubeconfig="+path, "auth", "whoami", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"system:serviceaccount:default:default", `"n1"`, pods.Items[0].Name} {
		if !strings.Contains(who, want) {
			t.Errorf("the token's user has no %s:\n%s", want, who)
		}
	}
}

func audited(t *testing.T, c *embedded.Cluster) {
	t.Helper()
	config := c.Config()
	config.Impersonate.UserName = "alice"
	alice := kubernetes.NewForConfigOrDie(config)
	begin := time.Now()
	for range 3 {
		_, err := alice.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsForbidden(err) {
			t.Fatalf("alice may list pods: %v", err)
		}
	}
	ask := embedded.RequestKind{User: "admin", As: "alice", Verb: "list", Resource: "pods"}
	if got := tally(t, c, begin, begin.Add(time.Hour))[ask]; got != 3 {
		t.Errorf("counted %d requests, want 3", got)
	}
	if got := tally(t, c, begin.Add(-time.Hour), begin)[ask]; got != 0 {
		t.Errorf("counted %d requests from before, want 0", got)
	}
}

func tally(t *testing.T, c *embedded.Cluster, from, to time.Time) map[embedded.RequestKind]int {
	t.Helper()
	requests, err := c.Requests(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return embedded.Tally(requests)
}

func TestStart_HalfWayLeavesNothing(t *testing.T) {
	cases := map[string]struct {
		assets func(t *testing.T) string
		limit  time.Duration
		want   string
	}{
		"a program is missing":        {assets: withoutKwok, limit: time.Minute, want: "starting kwok"},
		"the caller gives up at once": {assets: func(*testing.T) string { return "" }, limit: time.Second, want: "context deadline exceeded"},
		"a program ends by itself":    {assets: withFalse, limit: time.Minute, want: "kube-apiserver ended: exit status 1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tc.limit)
			defer cancel()
			_, err := embedded.Start(ctx, embedded.Options{Assets: tc.assets(t)})
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			leavesNothing(t, "")
		})
	}
}

// withoutKwok is a folder with every program but kwok.
func withoutKwok(t *testing.T) string {
	t.Helper()
	dir := linked(t)
	if err := os.Remove(filepath.Join(dir, "kwok")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// withFalse is a folder whose API server fails at once.
func withFalse(t *testing.T) string {
	t.Helper()
	dir := linked(t)
	path := filepath.Join(dir, "kube-apiserver")
	if err := errors.Join(os.Remove(path), os.Symlink("/bin/false", path)); err != nil {
		t.Fatal(err)
	}
	return dir
}

func linked(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"} {
		if err := os.Symlink(filepath.Join(testenv.Assets(), name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
