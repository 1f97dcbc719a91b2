// Package config_test tests the manifests on a real API server: it must accept them, and the
// programs may do what they need and nothing else.
package config_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

const (
	namespace      = "reboot-operator-system"
	agentAccount   = "reboot-operator-agent"
	managerAccount = "reboot-operator-manager"
)

func TestConfig(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "config")
}

// cluster is an API server with two nodes and one of the kustomizations applied.
type cluster struct {
	env        *embedded.Cluster
	config     *rest.Config
	admin      kubernetes.Interface
	kubeconfig string
	agents     map[string]*corev1.Pod // by node
}

// shipped has config/default and policy p, for all specs that leave nothing behind that would
// affect others.
var shipped *cluster

var _ = BeforeSuite(func(ctx SpecContext) {
	SetDefaultEventuallyTimeout(time.Minute) // enough for a busy machine
	SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	shipped = startServer(ctx)
	tryWithoutOperator(ctx, shipped)
	shipped.populate(ctx, "config/default")
	shipped.createPolicy(ctx)
	createMountedSecret(ctx, shipped)
	createNodeWithRecord(ctx, shipped)
})

// populate applies the folder, and creates an agent's pod and a database on each of the nodes n1
// and n2.
func (c *cluster) populate(ctx context.Context, folder string) {
	GinkgoHelper()
	c.install(ctx, folder)
	for _, name := range []string{"n1", "n2"} {
		node := makeNode(name)
		if name == "n1" {
			node.Labels[v1alpha1.LabelExcludeFromLoadBalancers] = "mine"
		}
		_, err := c.admin.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		c.agents[name] = c.createAgent(ctx, name)
		createDatabase(ctx, c, name)
	}
}

// startServer starts an API server with the operator's namespace.
func startServer(ctx context.Context) *cluster {
	GinkgoHelper()
	env := embedded.StartServerFor(GinkgoT())
	admin, err := kubernetes.NewForConfig(env.Config())
	Expect(err).NotTo(HaveOccurred())
	c := &cluster{env: env, config: env.Config(), admin: admin, agents: map[string]*corev1.Pod{}}
	c.kubeconfig = writeKubeconfig(env.Config())
	c.apply(ctx, "config/namespace")
	return c
}

// with returns a folder with components, like `make deploy COMPONENTS=…`, as a path relative to the
// repository's root.
func with(folder string, components ...string) string {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(testenv.Kustomization(dir, folder, components...)).To(Succeed())
	path, err := filepath.Rel(testenv.Root(), dir)
	Expect(err).NotTo(HaveOccurred())
	return path
}

func writeKubeconfig(config *rest.Config) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "kubeconfig")
	Expect(testenv.WriteKubeconfig(path, config)).To(Succeed())
	return path
}

func (c *cluster) apply(ctx context.Context, folder string) {
	GinkgoHelper()
	_, err := c.kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(testenv.Root(), folder))
	Expect(err).NotTo(HaveOccurred())
}

// install applies a folder after a dry run, which fails if something is missing or the API server
// prints a warning, for example about a deprecation.
func (c *cluster) install(ctx context.Context, folder string) {
	GinkgoHelper()
	_, err := c.kubectl(ctx, "apply", "--dry-run=server", "--warnings-as-errors", "-k", filepath.Join(testenv.Root(), folder))
	Expect(err).NotTo(HaveOccurred())
	c.apply(ctx, folder)
}

// agentsIn returns the pod spec of a kustomization's DaemonSet, with the API server's defaults.
func (c *cluster) agentsIn(ctx context.Context, folder string) corev1.PodSpec {
	GinkgoHelper()
	output, err := c.kubectl(ctx, "apply", "--dry-run=server", "-o", "json", "-l", "app.kubernetes.io/component=agent",
		"-k", filepath.Join(testenv.Root(), folder))
	Expect(err).NotTo(HaveOccurred())
	list := struct{ Items []json.RawMessage }{}
	Expect(json.Unmarshal([]byte(output), &list)).To(Succeed())
	for _, item := range list.Items {
		daemonSet := appsv1.DaemonSet{}
		if json.Unmarshal(item, &daemonSet) == nil && daemonSet.Kind == "DaemonSet" {
			return daemonSet.Spec.Template.Spec
		}
	}
	Fail("no DaemonSet in " + folder)
	return corev1.PodSpec{}
}

// kubectl runs the control plane's kubectl as the cluster administrator.
func (c *cluster) kubectl(ctx context.Context, args ...string) (string, error) {
	command := exec.CommandContext(ctx, filepath.Join(testenv.Assets(), "kubectl"), args...)
	command.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("running kubectl %v: %w: %s", args, err, stderr.String())
	}
	return stdout.String(), nil
}

// createAgent creates a pod from the template on a node, like the DaemonSet controller.
func (c *cluster) createAgent(ctx context.Context, node string) *corev1.Pod {
	GinkgoHelper()
	daemonSet, err := c.admin.AppsV1().DaemonSets(namespace).Get(ctx, agentAccount, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	pod := podOf(daemonSet.Spec.Template, "agent-"+node)
	pod.Spec.NodeName = node
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(daemonSet, appsv1.SchemeGroupVersion.WithKind("DaemonSet"))}
	pod, err = c.admin.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return pod
}

// tokenOf requests a token of the account like the kubelet. Without a pod it is not bound.
func (c *cluster) tokenOf(ctx context.Context, account string, pod *corev1.Pod) string {
	GinkgoHelper()
	request := &authenticationv1.TokenRequest{}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
		}
	}
	answer, err := c.admin.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return answer.Status.Token
}

func (c *cluster) createPolicy(ctx context.Context) {
	GinkgoHelper()
	body := `{"apiVersion":"reboot-operator.io/v1alpha1","kind":"RebootPolicy","metadata":{"name":"p","annotations":{"reboot-operator.io/resume":"a test"}}}`
	Expect(post(policies, json.RawMessage(body))(ctx, c.admin)).To(Succeed())
}

// bind gives a user a ClusterRole.
func (c *cluster) bind(ctx context.Context, role, user string) {
	GinkgoHelper()
	Expect(post(rbac+"/clusterrolebindings", object{
		"metadata": object{"name": strings.ReplaceAll(user, ":", "-")},
		"roleRef":  object{"apiGroup": rbacv1.GroupName, "kind": "ClusterRole", "name": role},
		"subjects": []object{{"apiGroup": rbacv1.GroupName, "kind": rbacv1.UserKind, "name": user}},
	})(ctx, c.admin)).To(Succeed())
}

func podOf(template corev1.PodTemplateSpec, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: template.Labels},
		Spec:       template.Spec,
	}
}

func makeNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:   name,
			Labels: map[string]string{"zone": "a", "reboot-operator.io/reboot-requested": "gpu-lost"},
			Annotations: map[string]string{
				"reboot-operator.io/reboot-requested": "new kernel",
			},
		},
		Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}},
			NodeInfo:   corev1.NodeSystemInfo{BootID: "b1"},
		},
	}
}
