package config_test

import (
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var _ = Describe("config/default", func() {
	It("runs two replicas of the manager, so that one survives every drain", func(ctx SpecContext) {
		deployment, err := shipped.admin.AppsV1().Deployments(namespace).Get(ctx, "reboot-operator-manager", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(deployment.Spec.Replicas).To(HaveValue(Equal(int32(2))))
		budget, err := shipped.admin.PolicyV1().PodDisruptionBudgets(namespace).Get(ctx, "reboot-operator-manager", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(budget.Spec.Selector.MatchLabels).To(Equal(deployment.Spec.Template.Labels))
		Expect(budget.Spec.MaxUnavailable.IntValue()).To(Equal(1))
	})

	It("serves the metrics of the manager's pods", func(ctx SpecContext) {
		service, err := shipped.admin.CoreV1().Services(namespace).Get(ctx, "reboot-operator-manager-metrics", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		deployment, err := shipped.admin.AppsV1().Deployments(namespace).Get(ctx, "reboot-operator-manager", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(service.Spec.Selector).To(Equal(deployment.Spec.Template.Labels))
		port := service.Spec.Ports[0]
		Expect(deployment.Spec.Template.Spec.Containers[0].Ports).To(ContainElement(
			corev1.ContainerPort{Name: port.TargetPort.String(), ContainerPort: port.Port, Protocol: corev1.ProtocolTCP}))
	})

	It("mounts every host path of the agent read-only, and a token of ten minutes", func() {
		spec := shipped.agents["n1"].Spec
		for _, mount := range spec.Containers[0].VolumeMounts {
			Expect(mount.ReadOnly).To(BeTrue(), mount.Name)
		}
		Expect(spec.AutomountServiceAccountToken).To(HaveValue(BeFalse()))
		Expect(spec.Volumes).To(ContainElement(HaveField("Projected.Sources", ContainElement(
			HaveField("ServiceAccountToken.ExpirationSeconds", HaveValue(Equal(int64(600))))))))
	})

	It("passes flags that the programs know", func(ctx SpecContext) {
		deployment, err := shipped.admin.AppsV1().Deployments(namespace).Get(ctx, "reboot-operator-manager", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		for name, args := range map[string][]string{
			"manager": deployment.Spec.Template.Spec.Containers[0].Args,
			"agent":   append(shipped.agents["n1"].Spec.Containers[0].Args, "--identity=serviceaccount", "--engines=auto,kernel", "--rpm-ostree-drive"),
		} {
			program, err := testenv.Build(ctx, name)
			Expect(err).NotTo(HaveOccurred())
			// Flags are parsed in order, so an unknown one fails before --help.
			output, err := exec.CommandContext(ctx, program, append(args, "--help")...).CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(output))
		}
	})

	DescribeTable("samples are accepted", func(ctx SpecContext, name string) {
		_, err := shipped.kubectl(ctx, "apply", "--dry-run=server", "-f", filepath.Join(testenv.Root(), "config", "samples", name))
		Expect(err).NotTo(HaveOccurred())
	}, samples())
})

// samples returns an entry for each file of config/samples.
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
