package config_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// A mutating policy, for example of Kyverno or a cloud provider, changes labels and annotations in
// the writes of others. Our policies see the result. They must allow it, except for keys that other
// programs act on.
var _ = Describe("a mutating policy that stamps each update", Label("mutating-policies"), Ordered, ContinueOnFailure, func() {
	const stampedAt, stampedBy = "example.com/stamped-at", "stamps.example.com/by"
	var manager, agent *actor

	BeforeAll(func(ctx SpecContext) {
		c := startServer(ctx)
		c.populate(ctx, "config/overlays/rbac-fallback")
		c.createPolicy(ctx)
		createNodeWithRecord(ctx, c)
		manager = c.as(c.tokenOf(ctx, managerAccount, nil), "")
		agent = c.as(c.tokenOf(ctx, agentAccount, c.agents["n1"]), "")
		expectAllowed(ctx, manager, patchNode("n1", forgedGrant))
		expectForbidden(ctx, manager, patchNode("n2", owned))
		expectForbidden(ctx, manager, patchPolicy)
		expectAllowed(ctx, agent, patchNode("n1", cordon))
		expectForbidden(ctx, agent, patchNode("n2", cordon))
		c.stampUpdates(ctx, stampedAt, stampedBy)
	})

	DescribeTable("leaves the writes of the manager", func(ctx SpecContext, try attempt) {
		expectAllowed(ctx, manager, try)
	},
		Entry("a grant", patchNode("n2", forgedGrant)),
		Entry("a grant, by the status", patchNode("n2", granted, "status")),
		Entry("the uncordon", patchNode("n4", object{"spec": object{"unschedulable": nil}})),
		Entry("hooks", patchNode("n2", askedHooks, "status")),
		Entry("the taint", patchNode("n2", tainted(pending("NoSchedule")))),
		Entry("its condition", patchNode("n2", conditioned("RebootPermitted"), "status")),
		Entry("its finalizer on a policy", mergeIntoPolicy(`{"metadata":{"finalizers":["reboot-operator.io/grants"]}}`)),
		Entry("taking the resume annotation from a policy", mergeIntoPolicy(`{"metadata":{"annotations":{"reboot-operator.io/resume":null}}}`)),
	)

	DescribeTable("leaves the writes of an agent", func(ctx SpecContext, try attempt) {
		expectAllowed(ctx, agent, try)
	},
		Entry("the cordon", patchNode("n1", cordon)),
		Entry("its report", patchNode("n1", report, "status")),
	)

	DescribeTable("does not open labels and annotations that other programs act on", func(ctx SpecContext, try attempt) {
		Expect(try(ctx, manager)).To(Satisfy(apierrors.IsForbidden))
	},
		Entry("a role", patchNode("n2", forgedRole)),
		Entry("a label that keeps workloads apart", patchNode("n2", forgedRestricted)),
		Entry("a label of the cluster's own, without a prefix", patchNode("n2", labelled("zone", "b"))),
		Entry("taking a label away", patchNode("n2", labelled("zone", nil))),
		Entry("the address that a network plugin routes to", patchNode("n2", annotated("flannel.alpha.coreos.com/public-ip", "192.0.2.1"))),
		Entry("the configuration of a machine", patchNode("n2", annotated("machineconfiguration.openshift.io/desiredConfig", "x"))),
		Entry("an annotation of an autoscaler", patchNode("n2", annotated("karpenter.sh/nodepool-hash", "x"))),
		Entry("an annotation of Kubernetes", patchNode("n2", annotated("volumes.kubernetes.io/controller-managed-attach-detach", "false"))),
		Entry("a policy's place in what is deployed", mergeIntoPolicy(`{"metadata":{"annotations":{"argocd.argoproj.io/tracking-id":"x"}}}`)),
	)
})

// stampUpdates makes the API server stamp every update of a Node or a policy with a new value.
func (c *cluster) stampUpdates(ctx context.Context, annotation, label string) {
	GinkgoHelper()
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "stamps"}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{}
	for group, resources := range map[string][]string{"": {"nodes", "nodes/status"}, v1alpha1.GroupVersion.Group: {"rebootpolicies"}} {
		policy.Spec.MatchConstraints.ResourceRules = append(policy.Spec.MatchConstraints.ResourceRules, admissionv1.NamedRuleWithOperations{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources},
			},
		})
	}
	policy.Spec.ReinvocationPolicy = admissionv1.NeverReinvocationPolicy
	policy.Spec.Mutations = []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{
		Expression: fmt.Sprintf(`
			(has(object.metadata.annotations) ? [] : [JSONPatch{op: "add", path: "/metadata/annotations", value: {}}]) +
			(has(object.metadata.labels) ? [] : [JSONPatch{op: "add", path: "/metadata/labels", value: {}}]) + [
			JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey(%q), value: "after " + string(oldObject.metadata.resourceVersion)},
			JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey(%q), value: "v" + string(oldObject.metadata.resourceVersion)}]`,
			annotation, label),
	}}}
	_, err := c.admin.AdmissionregistrationV1().MutatingAdmissionPolicies().Create(ctx, policy, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	binding := &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "stamps"}}
	binding.Spec.PolicyName = "stamps"
	_, err = c.admin.AdmissionregistrationV1().MutatingAdmissionPolicyBindings().Create(ctx, binding, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func(g Gomega) {
		node, err := c.admin.CoreV1().Nodes().Patch(ctx, "n2", types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{DryRun: dryRun})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(node.Annotations).To(HaveKey(annotation))
		g.Expect(node.Labels).To(HaveKey(label))
	}).Should(Succeed())
}
