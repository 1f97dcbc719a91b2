package e2e_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var _ = Describe("what runs on them", func() {
	It("is held to the Pod Security levels: the workload and the managers to restricted, the agents alone to no more than privileged", func(ctx SpecContext) {
		privileged := true
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "intruder-", Namespace: "shop"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{
				Name: "intruder", Image: "localhost/idle:1", SecurityContext: &corev1.SecurityContext{Privileged: &privileged},
			}}},
		}
		Expect(here.Create(ctx, pod)).To(MatchError(ContainSubstring(`violates PodSecurity "restricted:latest": privileged`)))
		warnings, err := exec.CommandContext(ctx, here.cluster.KubectlPath(), "--kubeconfig="+here.cluster.Kubeconfig(), "label", "--dry-run=server", "--overwrite",
			"namespace", operator, "pod-security.kubernetes.io/enforce=restricted").CombinedOutput()
		Expect(err).NotTo(HaveOccurred(), string(warnings))
		Expect(string(warnings)).To(And(ContainSubstring("Warning: "+agents+"-"), Not(ContainSubstring("manager"))))
		here.logf("Pod Security: a privileged pod is refused in shop; restricted would mind the agents only")
	})

	It("comes from images of one program each, with no shell, no setuid file and no package manager", func(ctx SpecContext) {
		for _, name := range []string{"manager", "agent"} {
			scan(ctx, here, here.image(name))
		}
		here.logf("images: one program each, nothing else")
	})
})

// scan scans an image as exported from the first machine's containerd.
func scan(ctx context.Context, s *site, name string) {
	GinkgoHelper()
	const archive = "/var/tmp/image.tar"
	m := s.rack.Machines[0]
	_, err := m.Run(ctx, "ctr", "--namespace=k8s.io", "images", "export", archive, name)
	Expect(err).NotTo(HaveOccurred())
	path, err := m.Path(archive)
	Expect(err).NotTo(HaveOccurred())
	defer func() { Expect(os.Remove(path)).To(Succeed()) }()
	found, err := exec.CommandContext(ctx, filepath.Join(testenv.Root(), "hack", "scan.sh"), path).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(found))
}
