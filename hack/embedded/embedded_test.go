package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/embedded/process"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

func children(t *testing.T) map[int]string {
	t.Helper()
	children, err := process.Children(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return children
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
