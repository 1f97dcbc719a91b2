// Package docs_test does what the documentation describes, on a real API server.
package docs_test

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// cluster is an API server, an administrator's client of it, and a folder to work in.
type cluster struct {
	env    *embedded.Cluster
	api    client.Client
	folder string
}

func newCluster(t *testing.T, env *embedded.Cluster) *cluster {
	t.Helper()
	api, err := testenv.NewClient(env.Config())
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{env: env, api: api, folder: t.TempDir()}
}

func (c *cluster) create(t *testing.T, o client.Object) {
	t.Helper()
	if err := c.api.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) get(t *testing.T, namespace, name string, o client.Object) error {
	t.Helper()
	return c.api.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o)
}

// blocks returns the blocks of code of a guide, by language and heading. Several are one text.
func blocks(t *testing.T, guide string) map[string]string {
	t.Helper()
	all, err := document.Blocks(filepath.Join(testenv.Root(), "docs", guide))
	if err != nil {
		t.Fatal(err)
	}
	byHeading := map[string]string{}
	for _, b := range all {
		byHeading[b.Language+" "+b.Heading] += b.Text
	}
	return byHeading
}

// TestOnAnAPIServer does what a guide and an example describe, one after the other.
func TestOnAnAPIServer(t *testing.T) {
	env := embedded.StartServerFor(t)
	t.Run("migrate.md", func(t *testing.T) { testMigrate(t, env) })
	t.Run("examples/ceph.yaml", func(t *testing.T) { testCeph(t, env) })
}

// testMigrate follows the guide from top to bottom, with every other operator installed.
func testMigrate(t *testing.T, env *embedded.Cluster) {
	t.Helper()
	c := newCluster(t, env)
	c.install(t)
	t.Run("the policies are accepted, and grant nothing at first", c.policiesAreAccepted)
	t.Run("kured's lock is not taken from a node that holds it", c.waitsForKured)
	t.Run("kured", c.leavesKured)
	t.Run("FLUO", c.leavesFLUO)
	t.Run("forth and back", c.goesForthAndBack)
	t.Run("cleaning up", c.cleansUp)
}

func (c *cluster) policiesAreAccepted(t *testing.T) {
	policies := 0
	for heading, text := range blocks(t, "migrate.md") {
		if !strings.Contains(text, "kind: RebootPolicy") {
			continue
		}
		policies++
		_, fields, _ := strings.Cut(text, "apiVersion")
		var policy v1alpha1.RebootPolicy
		if err := yaml.UnmarshalStrict([]byte("apiVersion"+fields), &policy); err != nil {
			t.Fatalf("%s: %v", heading, err)
		}
		if policy.Spec.ModeOrDefault() != v1alpha1.ModeDryRun {
			t.Errorf("%s: the first policy may grant nothing", heading)
		}
		policy.Name = "tried"
		if err := c.api.Create(t.Context(), &policy, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
			t.Errorf("%s: %v", heading, err)
		}
	}
	if policies != 2 {
		t.Errorf("%d policies", policies)
	}
}

// does runs the commands under a heading.
func (c *cluster) does(t *testing.T, heading string) string {
	t.Helper()
	script := blocks(t, "migrate.md")["sh "+heading]
	if script == "" {
		t.Fatalf("no commands under %q", heading)
	}
	if strings.Contains(script, convertKured) {
		script = strings.ReplaceAll(script, convertKured, buildPlugin(t)+" convert kured")
	}
	out, err := c.env.Shell(t.Context(), c.folder, script)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const convertKured = "kubectl reboot convert kured"

func (c *cluster) waitsForKured(t *testing.T) {
	lock := "kubectl -n kube-system annotate daemonset kured weave.works/kured-node-lock"
	if _, err := c.env.Shell(t.Context(), c.folder, lock+`='{"nodeID":"n1"}'`); err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(blocks(t, "migrate.md")["sh kured"], lock)
	value, _, _ := strings.Cut(rest, "\n")
	if _, err := c.env.Shell(t.Context(), c.folder, lock+value); err == nil || !strings.Contains(err.Error(), "--overwrite is false") {
		t.Errorf("want a refusal, got %v", err)
	}
	if _, err := c.env.Shell(t.Context(), c.folder, lock+"-"); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) leavesKured(t *testing.T) {
	c.does(t, "kured")
	if err := c.get(t, "kube-system", "kured", &appsv1.DaemonSet{}); !apierrors.IsNotFound(err) {
		t.Errorf("kured is still there: %v", err)
	}
	if _, err := c.env.Shell(t.Context(), c.folder, "kubectl apply -f policy.yaml"); err != nil {
		t.Fatal(err)
	}
	var policy v1alpha1.RebootPolicy
	if err := c.get(t, "", "workers", &policy); err != nil || policy.Spec.Mode != v1alpha1.ModeDryRun {
		t.Errorf("mode %s, %v", policy.Spec.Mode, err)
	}
}

func (c *cluster) leavesFLUO(t *testing.T) {
	c.does(t, "CLUO and FLUO")
	var operator appsv1.Deployment
	if err := c.get(t, "reboot-coordinator", "flatcar-linux-update-operator", &operator); err != nil || *operator.Spec.Replicas != 0 {
		t.Errorf("%d replicas of the operator: %v", *operator.Spec.Replicas, err)
	}
	if err := c.get(t, "reboot-coordinator", "flatcar-linux-update-agent", &appsv1.DaemonSet{}); !apierrors.IsNotFound(err) {
		t.Errorf("the agent is still there: %v", err)
	}
	if paused := c.node(t).Annotations[testenv.PrefixFLUO+"reboot-paused"]; paused != "true" {
		t.Errorf("reboot-paused is %q", paused)
	}
}

func (c *cluster) goesForthAndBack(t *testing.T) {
	if out := c.does(t, "The steps"); !strings.Contains(out, "NEEDS") || !strings.Contains(out, "n4") {
		t.Errorf("the table of nodes is not there: %s", out)
	}
	c.hasMode(t, v1alpha1.ModeEnforce)
	c.does(t, "And back")
	c.hasMode(t, v1alpha1.ModeDryRun)
	var manager appsv1.Deployment
	if err := c.get(t, "reboot-operator-system", "reboot-operator-manager", &manager); err != nil || *manager.Spec.Replicas != 0 {
		t.Errorf("%d replicas of the manager: %v", *manager.Spec.Replicas, err)
	}
}

func (c *cluster) cleansUp(t *testing.T) {
	c.does(t, "What they leave behind")
	node := c.node(t)
	elsewhere := []string{testenv.PrefixKured + "kured-node-lock", testenv.PrefixFLUO + "agent-version", testenv.PrefixFLUO + "agent"}
	for _, keys := range []map[string]string{node.Annotations, node.Labels} {
		for key := range keys { // kured's lock is the DaemonSet's in earnest, and FLUO has no CLUO's agent
			isTheirs := strings.HasPrefix(key, testenv.PrefixFLUO) || strings.HasPrefix(key, testenv.PrefixKured)
			if isTheirs && !slices.Contains(elsewhere, key) {
				t.Errorf("%s is left", key)
			}
		}
	}
}

func (c *cluster) install(t *testing.T) {
	t.Helper()
	for _, namespace := range []string{"reboot-coordinator", "reboot-operator-system"} {
		c.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	}
	c.create(t, makeDaemonSet("kube-system", "kured", nil))
	c.create(t, makeDaemonSet("reboot-coordinator", "flatcar-linux-update-agent", nil))
	c.create(t, makeDeployment("reboot-coordinator", "flatcar-linux-update-operator"))
	c.create(t, makeDeployment("reboot-operator-system", "reboot-operator-manager"))
	c.create(t, &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: "workers"}, Spec: v1alpha1.RebootPolicySpec{Mode: v1alpha1.ModeDryRun}})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n4"}}
	testenv.MarkByAncestors(node)
	c.create(t, node)
}

func (c *cluster) node(t *testing.T) *corev1.Node {
	t.Helper()
	var node corev1.Node
	if err := c.get(t, "", "n4", &node); err != nil {
		t.Fatal(err)
	}
	return &node
}

func (c *cluster) hasMode(t *testing.T, want v1alpha1.Mode) {
	t.Helper()
	var policy v1alpha1.RebootPolicy
	if err := c.get(t, "", "workers", &policy); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, policy.Spec.Mode); diff != "" {
		t.Errorf("mode (-want +got):\n%s", diff)
	}
}

func buildPlugin(t *testing.T) string {
	t.Helper()
	program, err := testenv.Build(context.WithoutCancel(t.Context()), "kubectl-reboot")
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func makeDaemonSet(namespace, name string, annotations map[string]string) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Annotations: annotations},
		Spec:       appsv1.DaemonSetSpec{Selector: selectorOf(name), Template: makePod(name)},
	}
}

func makeDeployment(namespace, name string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       appsv1.DeploymentSpec{Selector: selectorOf(name), Template: makePod(name)},
	}
}

func selectorOf(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

func makePod(name string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "example.com/" + name + ":1.0.0"}}},
	}
}
