package config_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ = Describe("Pod Security", Ordered, ContinueOnFailure, func() {
	const hostPaths = `volumes "dbus", "run", "boot-id", "etc", "usr"`
	var pods map[string]corev1.PodTemplateSpec
	var admin *actor

	BeforeAll(func(ctx SpecContext) {
		deployment, err := shipped.admin.AppsV1().Deployments(namespace).Get(ctx, "reboot-operator-manager", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		pods = map[string]corev1.PodTemplateSpec{
			"manager": deployment.Spec.Template,
			"agent":   {Spec: shipped.agents["n1"].Spec},
		}
		for _, level := range []string{"restricted", "baseline", "privileged"} {
			_, err := shipped.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: level, Labels: map[string]string{"pod-security.kubernetes.io/enforce": level},
			}}, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
		admin = shipped.administrator()
	})

	DescribeTable("admits", func(ctx SpecContext, who, level string) {
		Expect(createIn(level, pods[who])(ctx, admin)).To(Succeed())
		keepAs(sectionLevels, who, level, admin, "")
	},
		Entry("the manager", "manager", "restricted"),
		Entry("the agent", "agent", "privileged"),
	)

	DescribeTable("reports about the agent", func(ctx SpecContext, level string, why ...string) {
		violations := `violates PodSecurity "` + level + `:latest": ` + strings.Join(why, ", ")
		Expect(createIn(level, pods["agent"])(ctx, admin)).To(MatchError(Or(HaveSuffix(violations), HaveSuffix(beforeAppArmorField.Replace(violations)))))
		keepAs(sectionLevels, "agent", level, admin, strings.Join(why, "<br>"))
	},
		Entry("under baseline: only its host paths and its two profiles", "baseline",
			`forbidden AppArmor profile (container "agent" must not set AppArmor profile type to "Unconfined")`,
			`hostPath volumes (`+hostPaths+`)`,
			`seLinuxOptions (container "agent" set forbidden securityContext.seLinuxOptions: type "spc_t")`),
		Entry("under restricted: its uid as well", "restricted",
			`forbidden AppArmor profile (container "agent" must not set AppArmor profile type to "Unconfined")`,
			`seLinuxOptions (container "agent" set forbidden securityContext.seLinuxOptions: type "spc_t")`,
			`restricted volume types (`+hostPaths+` use restricted volume type "hostPath")`,
			`runAsNonRoot != true (container "agent" must not set securityContext.runAsNonRoot=false)`,
			`runAsUser=0 (container "agent" must not set runAsUser=0)`),
	)

	It("is enforced as privileged in the operator's namespace, for the agents", func(ctx SpecContext) {
		ns, err := shipped.admin.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(ns.Labels).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "privileged"))
	})
})

// beforeAppArmorField converts a violation to the message of older API servers such as 1.33, which
// add the annotation of the same profile.
var beforeAppArmorField = strings.NewReplacer(
	`forbidden AppArmor profile (container "agent" must not set AppArmor profile type to "Unconfined")`,
	`forbidden AppArmor profiles (container "agent" and annotation must not set AppArmor profile type to "Unconfined", `+
		`"container.apparmor.security.beta.kubernetes.io/agent="unconfined"")`,
)

// createIn creates a pod from the template in a namespace.
func createIn(namespace string, template corev1.PodTemplateSpec) attempt {
	pod := podOf(template, "try")
	pod.Namespace = namespace
	return post("/api/v1/namespaces/"+namespace+"/pods"+dry, pod)
}
