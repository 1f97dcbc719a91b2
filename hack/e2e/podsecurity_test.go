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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

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
		warnings := wouldMind(ctx, here, operator, "restricted")
		Expect(warnings).To(ContainElement(HavePrefix(agents + "-")))
		Expect(warnings).NotTo(ContainElement(ContainSubstring("manager")))
		here.logf("Pod Security: a privileged pod is refused in shop; restricted would mind the agents only")
	})

	It("comes from images of one program each, with no shell, no setuid file and no package manager", func(ctx SpecContext) {
		for _, name := range []string{"manager", "agent"} {
			scan(ctx, here, here.image(name))
		}
		here.logf("images: one program each, nothing else")
	})
})

// wouldMind is what the API server reports of a namespace's pods, were a level enforced. Nothing is changed.
func wouldMind(ctx context.Context, s *site, name, level string) []string {
	GinkgoHelper()
	var received warnings
	config := rest.CopyConfig(s.cluster.Config())
	config.WarningHandlerWithContext = &received
	client, err := kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
	namespace, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	namespace.Labels["pod-security.kubernetes.io/enforce"] = level
	_, err = client.CoreV1().Namespaces().Update(ctx, namespace, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	Expect(err).NotTo(HaveOccurred())
	return received
}

// warnings are those that the API server has sent. One request at a time is made with it.
type warnings []string

func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	*w = append(*w, text)
}

// scan looks into an image as the first machine's containerd has it.
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
