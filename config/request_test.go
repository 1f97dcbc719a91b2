package config_test

import (
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// docs/controllers/request.yaml must do what docs/controllers.md describes.
var _ = Describe("a controller that may only request reboots", func() {
	It("writes the label, and nothing else of a Node", func(ctx SpecContext) {
		_, err := shipped.kubectl(ctx, "apply", "-f", filepath.Join(testenv.Root(), "docs", "controllers", "request.yaml"))
		Expect(err).NotTo(HaveOccurred())
		token, err := shipped.admin.CoreV1().ServiceAccounts("node-health").CreateToken(ctx, "node-health", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		controller := shipped.as(token.Status.Token, "")
		// From here on the API server enforces the role and the policy.
		expectAllowed(ctx, controller, getNode("n1"))
		expectForbidden(ctx, controller, patchNode("n1", labelled("zone", "b")))

		expectAllowed(ctx, controller, patchNode("n1", labelled("reboot-operator.io/reboot-requested", "disk")))
		expectAllowed(ctx, controller, patchNode("n1", labelled("reboot-operator.io/reboot-requested", nil)))
		for _, try := range []attempt{
			patchNode("n1", labelled("zone", nil)), patchNode("n1", labelled("reboot-operator.io/other", "x")),
			patchNode("n1", annotated("reboot-operator.io/paused", "true")), patchNode("n1", annotated("example.com/any", "x")),
			patchNode("n1", object{"spec": object{"unschedulable": true}}), patchNode("n1", taint),
			patchNode("n1", conditioned("KernelDeadlock"), "status"),
		} {
			expectForbidden(ctx, controller, try)
		}
	})
})
