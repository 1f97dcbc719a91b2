package config_test

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var _ = Describe("another namespace", func() {
	It("is a kustomization, as in docs/install.md, and keeps in default what writes events", func(ctx SpecContext) {
		page, err := os.ReadFile(filepath.Join(testenv.Root(), "docs", "install.md"))
		Expect(err).NotTo(HaveOccurred())
		_, text, found := strings.Cut(string(page), "```yaml\nnamespace: ")
		Expect(found).To(BeTrue(), "docs/install.md has the kustomization")
		text, _, _ = strings.Cut("namespace: "+text, "```")
		dir := GinkgoT().TempDir()
		root, err := filepath.Rel(dir, testenv.Root())
		Expect(err).NotTo(HaveOccurred())
		text = strings.ReplaceAll(text, "[config/", "["+root+"/config/")
		Expect(os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600)).To(Succeed())

		manifests, err := shipped.kubectl(ctx, "kustomize", dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(manifests).NotTo(ContainSubstring("reboot-operator-system"))
		var inDefault []string
		for manifest := range strings.SplitSeq(manifests, "\n---\n") {
			if strings.Contains(manifest, "\n  namespace: default\n") {
				kind, _, _ := strings.Cut(manifest[strings.Index(manifest, "kind: ")+len("kind: "):], "\n")
				inDefault = append(inDefault, kind)
			}
		}
		Expect(inDefault).To(ConsistOf("Role", "Role", "RoleBinding", "RoleBinding"))

		_, err = shipped.admin.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "node-ops"}}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		_, err = shipped.kubectl(ctx, "apply", "--dry-run=server", "-k", dir)
		Expect(err).NotTo(HaveOccurred())
	})
})
