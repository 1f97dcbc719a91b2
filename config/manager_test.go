package config_test

import (
	"context"
	"net/http"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A stolen token of the manager: it marks every node, and can neither touch a pod nor forge more than the ledger takes.
var _ = Describe("the manager's token", Ordered, ContinueOnFailure, func() {
	const manager = "manager"
	var token string
	var it *actor

	BeforeAll(func(ctx SpecContext) {
		token = shipped.tokenOf(ctx, managerAccount, nil)
		it = shipped.as(token, "")
		expectAllowed(ctx, it, patchNode("n1", cordon))
		// The ledger as the manager leaves it: full.
		for _, patch := range []string{`{"status":{"seq":8,"limit":1}}`, `{"status":{"grants":[` + entryOf("n1", "8") + `]}}`} {
			Expect(updateLedger(ctx, it, patch)).To(Succeed())
		}
	})

	DescribeTable("allows", func(ctx SpecContext, try attempt) {
		expectAllowed(ctx, it, try)
		keep(sectionManager, manager, it)
	},
		Entry("watching all nodes", watchNodes("")),
		Entry("cordoning any node", patchNode("n2", cordon)),
		Entry("a grant on any node, with or without a ledger", patchNode("n2", forgedGrant)),
		Entry("a taint on any node", patchNode("n2", taint)),
		Entry("a condition on any node", patchNode("n2", report, "status")),
		Entry("watching policies", attempt(watchPolicies)),
		Entry("changing a policy, more than it needs (finalizer, resume)", attempt(patchPolicy)),
		Entry("a release in the ledger", writeLedger(`{"status":{"grants":[]}}`)),
		Entry("writing an event", attempt(createEvent)),
		Entry("its own lease", leaseIn(namespace)),
		Entry("asking who scrapes, and what they may", attempt(createReview)),
		Entry("reading a secret of its own namespace by name", attempt(getMountedSecret)),
	)

	DescribeTable("refuses", func(ctx SpecContext, try attempt) {
		Expect(try(ctx, it)).To(HaveOccurred())
		Expect(it.last.Code).To(BeElementOf(http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusConflict))
		keep(sectionManager, manager, it)
	},
		Entry("a grant over the limit", writeLedger(`{"status":{"seq":9,"grants":[`+entryOf("n1", "8")+`,`+entryOf("n2", "9")+`]}}`)),
		Entry("a limit over the policy's", writeLedger(`{"status":{"limit":2}}`)),
		Entry("limit and grant over the policy's at once",
			writeLedger(`{"status":{"limit":2,"seq":9,"grants":[`+entryOf("n1", "8")+`,`+entryOf("n2", "9")+`]}}`)),
		Entry("a number that goes back, to use a grant once more", writeLedger(`{"status":{"seq":7,"grants":[`+entryOf("n1", "7")+`]}}`)),
		Entry("a grant of a number that the ledger has not reached", writeLedger(`{"status":{"grants":[`+entryOf("n2", "9")+`]}}`)),
		Entry("two entries for one node", writeLedger(`{"status":{"seq":9,"grants":[`+entryOf("n1", "8")+`,`+entryOf("n1", "9")+`]}}`)),
		Entry("a write to the ledger that was read before another write", writeLedger(`{"metadata":{"resourceVersion":"1"},"status":{"seq":9}}`)),
		Entry("a write to a node that was read before another write", patchNode("n2", object{"metadata": object{"resourceVersion": "1"}})),
		Entry("making a policy", attempt(createAnotherPolicy)),
		Entry("deleting a policy", attempt(deletePolicy)),
		Entry("writing an event of another namespace", createEventIn(metav1.NamespaceSystem)),
		Entry("making a node", attempt(createNode)),
		Entry("deleting a node", deleteNode("n2")),
		Entry("the heartbeat of a node", heartbeatOf("n2")),
		Entry("listing pods", listPods("")),
		Entry("watching pods", watchPods("n1")),
		Entry("making a pod", attempt(createPod)),
		Entry("evicting a pod", evictPodOf("n1")),
		Entry("deleting a pod", deletePodOf("n1")),
		Entry("reading any secret", attempt(listSecrets)),
		Entry("listing the secrets of its own namespace", listSecretsOf(namespace)),
		Entry("reading a secret of another namespace", getSecret(metav1.NamespaceSystem, "x")),
		Entry("making a token of its own", attempt(createToken)),
		Entry("making a DaemonSet", attempt(createDaemonSet)),
		Entry("a DaemonSet of the agents' name", applyDaemonSet(namespace, agentAccount)),
		Entry("looking at DaemonSets", attempt(listDaemonSets)),
		Entry("a lease elsewhere, such as kube-scheduler's", leaseIn(metav1.NamespaceSystem)),
		Entry("widening a role", attempt(widenRole)),
	)

	DescribeTable("is not to be had by", func(ctx SpecContext, whom rest.ImpersonationConfig) {
		a := shipped.impersonating(token, whom)
		Expect(getNode("n1")(ctx, a)).To(HaveOccurred())
		keep(sectionManager, manager, a)
	},
		Entry("being a node", rest.ImpersonationConfig{UserName: "system:node:n1"}),
		Entry("being the agent", rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + agentAccount}),
		Entry("being in system:masters", rest.ImpersonationConfig{UserName: "me", Groups: []string{"system:masters"}}),
	)

	It("holds for every verb of every resource", func(ctx SpecContext) {
		shipped.keepEverything(ctx, sectionManager, manager, it, strings.ReplaceAll(mighty, "secrets", "secrets.* in kube-system|(list|watch|create|update|patch|delete).* secrets")+"|pods|^delete|daemonsets")
	})
})

// writeLedger tries to write the ledger as the manager does, as a whole.
func writeLedger(change string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		return updateLedger(ctx, c, change, metav1.DryRunAll)
	}
}

// updateLedger merges a change into the policy as it is.
func updateLedger(ctx context.Context, c kubernetes.Interface, change string, dryRun ...string) error {
	api := c.Discovery().RESTClient()
	policy, err := api.Get().AbsPath(policyPath).DoRaw(ctx)
	if err != nil {
		return err
	}
	if policy, err = jsonpatch.MergePatch(policy, []byte(change)); err != nil {
		return err
	}
	request := api.Put().AbsPath(policyPath+"/status").SetHeader("Content-Type", "application/json").Body(policy)
	for _, value := range dryRun {
		request.Param("dryRun", value)
	}
	return request.Do(ctx).Error()
}

func entryOf(node, seq string) string {
	return `{"node":"` + node + `","seq":` + seq + `,"bootID":"b1","at":"2026-11-21T00:00:00Z"}`
}

func watchPolicies(ctx context.Context, c kubernetes.Interface) error {
	answer, err := c.Discovery().RESTClient().Get().AbsPath("/apis/reboot-operator.io/v1alpha1/rebootpolicies").Param("watch", "1").Stream(ctx)
	if err == nil {
		_ = answer.Close()
	}
	return err
}

func createAnotherPolicy(ctx context.Context, c kubernetes.Interface) error {
	body := []byte(`{"apiVersion":"reboot-operator.io/v1alpha1","kind":"RebootPolicy","metadata":{"name":"q"}}`)
	return c.Discovery().RESTClient().Post().AbsPath("/apis/reboot-operator.io/v1alpha1/rebootpolicies").
		Param("dryRun", metav1.DryRunAll).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
}

func deletePolicy(ctx context.Context, c kubernetes.Interface) error {
	return c.Discovery().RESTClient().Delete().AbsPath(policyPath).Param("dryRun", metav1.DryRunAll).Do(ctx).Error()
}

func leaseIn(namespace string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		_, err := c.CoordinationV1().Leases(namespace).Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "reboot-operator"},
		}, metav1.CreateOptions{DryRun: dryRun})
		return err
	}
}

func createReview(ctx context.Context, c kubernetes.Interface) error {
	_, err := c.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "prometheus", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: "/metrics", Verb: "get"},
		},
	}, metav1.CreateOptions{})
	return err
}
