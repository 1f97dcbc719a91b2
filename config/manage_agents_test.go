package config_test

import (
	"context"
	"encoding/json"
	"flag"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/controllers"
	"github.com/reboot-operator/reboot-operator/hack/document"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var _ = Describe("agents that the manager brings", Ordered, func() {
	var c *cluster

	BeforeAll(func(ctx SpecContext) { c = startServer(ctx) })

	for _, static := range []string{"config/default", "config/overlays/rbac-fallback"} {
		Describe(static+" with config/components/manage-agents", func() {
			var token string
			var stopManager func()

			BeforeAll(func(ctx SpecContext) {
				c.install(ctx, with(static, "manage-agents"))
				token = c.tokenOf(ctx, managerAccount, nil)
				stopManager = c.runManager(ctx, token)
				DeferCleanup(func(ctx SpecContext) {
					stopManager()
					// Clean up for the next spec. After a failure these may not exist.
					_ = remove(policyPath)(ctx, c.admin)
					_ = remove(daemonSetsIn(namespace)+"/"+agentAccount)(ctx, c.admin)
				})
			})

			soon := func() AsyncAssertion { return Eventually(c.agentSet) }

			It("do not exist before the first policy", func() {
				Expect(c.agentSet()).To(BeNil())
			})

			It("are those of "+static+", with the manager's permissions alone", func(ctx SpecContext) {
				c.createPolicy(ctx)
				soon().ShouldNot(BeNil())
				want := c.daemonSetOf(ctx, static)
				Expect(c.agentSet().Spec).To(Equal(want.Spec))
				Expect(c.agentSet().Labels).To(HaveKeyWithValue("app.kubernetes.io/part-of", want.Labels["app.kubernetes.io/part-of"]))
			})

			It("are repaired", func(ctx SpecContext) {
				patch := []byte(`{"spec":{"updateStrategy":{"type":"OnDelete","rollingUpdate":null}}}`)
				_, err := c.admin.AppsV1().DaemonSets(namespace).Patch(ctx, agentAccount, types.MergePatchType, patch, metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
				soon().Should(HaveField("Spec.UpdateStrategy.Type", appsv1.RollingUpdateDaemonSetStrategyType))
			})

			It("go with the last policy", func(ctx SpecContext) {
				Expect(remove(policyPath)(ctx, c.admin)).To(Succeed())
				soon().Should(BeNil())
			})

			DescribeTable("are all that the manager may create", func(ctx SpecContext, try attempt) {
				manager := c.as(token, "")
				Expect(try(ctx, manager)).To(Satisfy(apierrors.IsForbidden))
				if static == "config/default" {
					keep(sectionManageAgents, "manager", manager)
				}
			},
				Entry("creating a DaemonSet of another name", applyDaemonSet(namespace, "miner")),
				Entry("creating that DaemonSet in another namespace", applyDaemonSet("kube-system", agentAccount)),
				Entry("creating a DaemonSet without a name in the request", createDaemonSet),
				Entry("listing the DaemonSets in its namespace", listDaemonSets),
				Entry("creating a pod itself", createPod),
				Entry("creating a token of the agents", createToken),
			)

			It("are all it may create, for every verb of every resource", func(ctx SpecContext) {
				if static != "config/default" {
					Skip("the manager has the same rights in both")
				}
				manager := c.as(token, "")
				Expect(applyDaemonSet(namespace, agentAccount)(ctx, manager)).To(Succeed())
				keepAs(sectionManageAgents, "manager", "the agents' DaemonSet, with any image and as root on every node", manager, "")
				keepEverything(ctx, c, sectionManageAgents, "manager", manager, "(get|create|update|patch|delete) pods|pods/|daemonsets.* in kube-system|serviceaccounts")
			})

			It("are managed by the user again after the commands of docs/install.md", func(ctx SpecContext) {
				body := `{"apiVersion":"reboot-operator.io/v1alpha1","kind":"RebootPolicy","metadata":{"name":"p"},` +
					`"spec":{"nodeSelector":{"matchLabels":{"pool":"a"}}}}`
				Expect(post(policies, json.RawMessage(body))(ctx, c.admin)).To(Succeed())
				soon().Should(HaveField("Spec.Template.Spec.Affinity", Not(BeNil())))
				made := c.agentSet()
				stopManager()
				_, err := c.kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(testenv.Root(), static))
				Expect(err).NotTo(HaveOccurred())
				_, err = c.env.Shell(ctx, GinkgoT().TempDir(), handBack())
				Expect(err).NotTo(HaveOccurred())
				got, want := c.agentSet(), c.daemonSetOf(ctx, static)
				Expect(got.Spec).To(Equal(want.Spec))
				Expect(got.Labels).To(Equal(want.Labels))
				Expect(got.UID).To(Equal(made.UID))
				manager := c.as(token, "")
				Eventually(func() error { return applyDaemonSet(namespace, agentAccount)(ctx, manager) }).Should(Satisfy(apierrors.IsForbidden))
			})
		})
	}
})

// handBack returns the last commands of docs/install.md.
func handBack() string {
	GinkgoHelper()
	blocks, err := document.Blocks(filepath.Join(testenv.Root(), "docs", "install.md"))
	Expect(err).NotTo(HaveOccurred())
	return blocks[len(blocks)-1].Text
}

// runManager runs only the part of the manager that creates agents, with the arguments of its
// Deployment and the token. It returns a function that stops it.
func (c *cluster) runManager(ctx context.Context, token string) func() {
	GinkgoHelper()
	deployment, err := c.admin.AppsV1().Deployments(namespace).Get(ctx, managerAccount, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	var options controllers.Options
	flags := flag.NewFlagSet("manager", flag.ContinueOnError)
	options.Bind(flags)
	args := slices.Concat(deployment.Spec.Template.Spec.Containers[0].Args,
		[]string{"--namespace=" + namespace, "--metrics-bind-address=0", "--health-probe-bind-address=0"})
	Expect(flags.Parse(args)).To(Succeed())
	Expect(options.Complete()).To(Succeed())
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = token
	mgr, err := testenv.NewManager(config, options.Manager)
	Expect(err).NotTo(HaveOccurred())
	Expect(controllers.SetupAgents(mgr, options)).To(Succeed())
	life, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(life) }()
	return sync.OnceFunc(func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()))
	})
}

// agentSet returns the DaemonSet of the agents, or nil.
func (c *cluster) agentSet() *appsv1.DaemonSet {
	GinkgoHelper()
	set, err := c.admin.AppsV1().DaemonSets(namespace).Get(context.Background(), agentAccount, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return set
}

// daemonSetOf returns the DaemonSet that a folder would create, with the API server's defaults.
func (c *cluster) daemonSetOf(ctx context.Context, folder string) *appsv1.DaemonSet {
	GinkgoHelper()
	manifests, err := c.kubectl(ctx, "kustomize", filepath.Join(testenv.Root(), folder))
	Expect(err).NotTo(HaveOccurred())
	for manifest := range strings.SplitSeq(manifests, "\n---\n") {
		if !strings.Contains(manifest, "\nkind: DaemonSet\n") {
			continue
		}
		set := &appsv1.DaemonSet{}
		Expect(yaml.UnmarshalStrict([]byte(manifest), set)).To(Succeed())
		set.Namespace = metav1.NamespaceDefault
		set, err = c.admin.AppsV1().DaemonSets(set.Namespace).Create(ctx, set, metav1.CreateOptions{DryRun: dryRun})
		Expect(err).NotTo(HaveOccurred())
		return set
	}
	Fail(folder + " has no DaemonSet")
	return nil
}

// applyDaemonSet applies a DaemonSet by server-side apply.
func applyDaemonSet(namespace, name string) attempt {
	labels := object{"app": "x"}
	return send(http.MethodPatch, daemonSetsIn(namespace)+"/"+name+dry+"&fieldManager=test", types.ApplyPatchType, object{
		"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": object{"name": name}, "spec": object{
			"selector": object{"matchLabels": labels},
			"template": object{"metadata": object{"labels": labels}, "spec": object{"containers": []object{{"name": "x", "image": "x"}}}},
		},
	})
}

func daemonSetsIn(namespace string) string {
	return "/apis/apps/v1/namespaces/" + namespace + "/daemonsets"
}

var (
	createDaemonSet = post(daemonSetsIn(namespace)+dry, object{"metadata": object{"name": agentAccount}})
	listDaemonSets  = get(daemonSetsIn(namespace))
)
