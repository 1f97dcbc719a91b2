package config_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A hostile pod with the default token must get nothing from the operator.
var _ = Describe("the token of any other pod", Ordered, ContinueOnFailure, func() {
	const pod = "default/default"
	var it *actor

	BeforeAll(func(ctx SpecContext) {
		it = shipped.as(shipped.tokenOfOther(ctx, "default"), "")
	})

	DescribeTable("refuses", func(ctx SpecContext, try attempt) {
		Expect(try(ctx, it)).To(Satisfy(apierrors.IsForbidden))
		keep(sectionStranger, pod, it)
	},
		Entry("reading a policy", getPolicy),
		Entry("pausing by a policy", patchPolicy),
		Entry("an entry in the ledger", forgeLedger),
		Entry("a grant that nobody gave", patchNode("n1", forgedGrant)),
		Entry("asking for a reboot", patchNode("n1", forgedRequest)),
		Entry("cordoning a node", patchNode("n1", cordon)),
		Entry("reading a node", getNode("n1")),
		Entry("listing pods", listPods("")),
		Entry("evicting the agent", evictPodOf("n1")),
		Entry("making a token of the manager", createToken),
		Entry("reading a secret of the operator", getSecret(namespace, "x")),
		Entry("holding the manager's lease", leaseIn(namespace)),
	)

	It("holds for every verb of every resource", func(ctx SpecContext) {
		w := withoutOperator
		keepBreadth(sectionStranger, "before the operator is installed", w.tried, w.refused, w.through)
		keepEverything(ctx, shipped, sectionStranger, pod, it, ".")
	})
})

// tokenOfOther returns a token of a ServiceAccount without bindings in namespace default.
func (c *cluster) tokenOfOther(ctx context.Context, account string) string {
	GinkgoHelper()
	accounts := c.admin.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	_, err := accounts.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	Expect(err).To(Or(BeNil(), Satisfy(apierrors.IsAlreadyExists)))
	answer, err := accounts.CreateToken(ctx, account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return answer.Status.Token
}
