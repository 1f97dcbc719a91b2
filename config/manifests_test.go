package config_test

import (
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var _ = Describe("config/default", Ordered, ContinueOnFailure, func() {
	var c *cluster

	BeforeAll(func(ctx SpecContext) { c = start(ctx, "config/default") })

	It("makes two replicas of the manager, one of which survives every drain", func(ctx SpecContext) {
		deployment, err := c.admin.AppsV1().Deployments(namespace).Get(ctx, "reboot-operator-manager", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(deployment.Spec.Replicas).To(HaveValue(Equal(int32(2))))
		budget, err := c.admin.PolicyV1().PodDisruptionBudgets(namespace).Get(ctx, "reboot-operator-manager", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(budget.Spec.Selector.MatchLabels).To(Equal(deployment.Spec.Template.Labels))
		Expect(budget.Spec.MaxUnavailable.IntValue()).To(Equal(1))
	})

	It("serves the metrics of the manager's pods", func(ctx SpecContext) {
		service, err := c.admin.CoreV1().Services(namespace).Get(ctx, "reboot-operator-manager-metrics", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		deployment, err := c.admin.AppsV1().Deployments(namespace).Get(ctx, "reboot-operator-manager", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(service.Spec.Selector).To(Equal(deployment.Spec.Template.Labels))
		port := service.Spec.Ports[0]
		Expect(deployment.Spec.Template.Spec.Containers[0].Ports).To(ContainElement(
			corev1.ContainerPort{Name: port.TargetPort.String(), ContainerPort: port.Port, Protocol: corev1.ProtocolTCP}))
	})

	Describe("Pod Security", Ordered, func() {
		BeforeAll(func(ctx SpecContext) {
			_, err := c.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: "restricted", Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
			}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		})

		tryIn := func(ctx SpecContext, template corev1.PodTemplateSpec) error {
			pod := podOf(template, "try")
			pod.Namespace = "restricted"
			_, err := c.admin.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}

		It("admits the manager's pod as restricted", func(ctx SpecContext) {
			deployment, err := c.admin.AppsV1().Deployments(namespace).Get(ctx, "reboot-operator-manager", metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(tryIn(ctx, deployment.Spec.Template)).To(Succeed())
		})

		It("minds the agent's host paths, its uid and its two profiles, and nothing else", func(ctx SpecContext) {
			err := tryIn(ctx, corev1.PodTemplateSpec{Spec: c.agents["n1"].Spec})
			Expect(err).To(MatchError(HaveSuffix(`violates PodSecurity "restricted:latest": ` +
				`forbidden AppArmor profile (container "agent" must not set AppArmor profile type to "Unconfined"), ` +
				`seLinuxOptions (container "agent" set forbidden securityContext.seLinuxOptions: type "spc_t"), ` +
				`restricted volume types (volumes "dbus", "run", "boot-id", "os-release", "usr-share", "etc-flatcar" use restricted volume type "hostPath"), ` +
				`runAsNonRoot != true (container "agent" must not set securityContext.runAsNonRoot=false), ` +
				`runAsUser=0 (container "agent" must not set runAsUser=0)`)))
		})
	})

	It("mounts every host path of the agent read-only, and a token of ten minutes", func() {
		spec := c.agents["n1"].Spec
		for _, mount := range spec.Containers[0].VolumeMounts {
			Expect(mount.ReadOnly).To(BeTrue(), mount.Name)
		}
		Expect(spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
		Expect(spec.Volumes).To(ContainElement(HaveField("Projected.Sources", ContainElement(
			HaveField("ServiceAccountToken.ExpirationSeconds", HaveValue(Equal(int64(600))))))))
	})

	It("passes flags that the programs know", func(ctx SpecContext) {
		deployment, err := c.admin.AppsV1().Deployments(namespace).Get(ctx, "reboot-operator-manager", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		for folder, args := range map[string][]string{
			".":       deployment.Spec.Template.Spec.Containers[0].Args,
			"./agent": append(c.agents["n1"].Spec.Containers[0].Args, "--identity=serviceaccount", "--engines=auto,kernel", "--rpm-ostree-drive", "--claim-coordinator"),
		} {
			program := filepath.Join(GinkgoT().TempDir(), "program")
			build := exec.CommandContext(ctx, "go", "build", "-o", program, folder)
			build.Dir = testenv.Root()
			output, err := build.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(output))
			// Flags are read in order: one that nobody knows is an error before the help is reached.
			output, err = exec.CommandContext(ctx, program, append(args, "--help")...).CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(output))
		}
	})

	DescribeTable("samples are accepted", func(ctx SpecContext, name string) {
		_, err := c.kubectl(ctx, "apply", "--dry-run=server", "-f", filepath.Join(testenv.Root(), "config", "samples", name))
		Expect(err).NotTo(HaveOccurred())
	}, samples())

	It("takes the network policies", func(ctx SpecContext) { c.dryRun(ctx, "config/network-policy") })

	DescribeTable("what the manager may do", func(ctx SpecContext, want bool, attributes authorizationv1.ResourceAttributes) {
		review, err := c.admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User:               "system:serviceaccount:" + namespace + ":" + managerAccount,
				Groups:             []string{"system:serviceaccounts", "system:authenticated"},
				ResourceAttributes: &attributes,
			},
		}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(review.Status.Allowed).To(Equal(want), review.Status.Reason)
	},
		Entry("watch nodes", true, access("watch", "", "nodes")),
		Entry("grant on a node", true, access("patch", "", "nodes")),
		Entry("say why not on a node", true, access("patch", "", "nodes/status")),
		Entry("delete a node", false, access("delete", "", "nodes")),
		Entry("watch policies", true, access("watch", "reboot-operator.io", "rebootpolicies")),
		Entry("keep the ledger", true, access("update", "reboot-operator.io", "rebootpolicies/status")),
		Entry("keep the finalizer", true, access("update", "reboot-operator.io", "rebootpolicies")),
		Entry("make a policy", false, access("create", "reboot-operator.io", "rebootpolicies")),
		Entry("delete a policy", false, access("delete", "reboot-operator.io", "rebootpolicies")),
		Entry("write events", true, access("create", "events.k8s.io", "events")),
		Entry("hold the lease", true, in(namespace, access("update", "coordination.k8s.io", "leases"))),
		Entry("hold a lease elsewhere", false, in("kube-system", access("update", "coordination.k8s.io", "leases"))),
		Entry("ask who scrapes", true, access("create", "authentication.k8s.io", "tokenreviews")),
		Entry("ask what the scraper may", true, access("create", "authorization.k8s.io", "subjectaccessreviews")),
		Entry("read pods", false, access("list", "", "pods")),
		Entry("evict pods", false, access("create", "", "pods/eviction")),
		Entry("read secrets", false, in(namespace, access("get", "", "secrets"))),
		Entry("bring agents", false, in(namespace, access("create", "apps", "daemonsets"))),
		Entry("look at agents", false, in(namespace, access("list", "apps", "daemonsets"))),
	)
})

// samples makes an entry of each file of config/samples.
func samples() []TableEntry {
	paths, err := filepath.Glob(filepath.Join(testenv.Root(), "config", "samples", "*.yaml"))
	if err != nil || len(paths) == 0 {
		panic("config/samples is empty")
	}
	var entries []TableEntry
	for _, path := range paths {
		if name := filepath.Base(path); name != "kustomization.yaml" {
			entries = append(entries, Entry(name, name))
		}
	}
	return entries
}
