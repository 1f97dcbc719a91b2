package config_test

import (
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Behaviour 55 on Kubernetes 1.31 to 1.35: plain RBAC, limited by admission policies.
var _ = Describe("identity serviceaccount (config/overlays/rbac-fallback) (behaviour 55)", Ordered, ContinueOnFailure, func() {
	const (
		agent   = "in its own name"
		unbound = "a token of no pod"
		node    = "as node n1"
	)
	var (
		c   *cluster
		who map[string]*actor
	)

	BeforeAll(func(ctx SpecContext) {
		c = startServer(ctx)
		c.populate(ctx, "config/overlays/rbac-fallback")
		c.createPolicy(ctx)
		token := c.tokenOf(ctx, agentAccount, c.agents["n1"])
		who = map[string]*actor{
			agent:   c.as(token, ""),
			unbound: c.as(c.tokenOf(ctx, agentAccount, nil), ""),
			node:    c.as(token, "system:node:n1"),
		}
		// From here on the API server enforces the roles and the policies.
		expectAllowed(ctx, who[agent], patchNode("n1", cordon))
		for _, try := range []attempt{patchNode("n2", cordon), deletePodOf("n2")} {
			Eventually(func() error { return try(ctx, who[agent]) }).Should(Satisfy(apierrors.IsForbidden))
		}
	})

	It("refuses the agent", func() {
		Expect(c.agents["n1"].Spec.Containers[0].Args).To(ContainElement("--identity=serviceaccount"))
	})

	DescribeTable("allows", func(ctx SpecContext, try attempt) {
		expectAllowed(ctx, who[agent], try)
		keep(sectionFallback, agent, who[agent])
	},
		Entry("reading the own node", getNode("n1")),
		Entry("listing the own node", listNodes("n1")),
		Entry("watching the own node", watchNodes("n1")),
		Entry("cordoning the own node", patchNode("n1", cordon)),
		Entry("reporting on the own node", patchNode("n1", report, "status")),
		Entry("a status write that repeats the kubelet's condition", patchNode("n1", object{"status": object{
			"conditions": []object{{"type": "Ready", "status": "True"}},
		}}, "status")),
		Entry("listing the own pods", listPods("n1")),
		Entry("watching the own pods", watchPods("n1")),
		Entry("evicting an own pod", evictPodOf("n1")),
		Entry("deleting an own pod", deletePodOf("n1")),
		Entry("writing an event", createEvent),
		Entry("reading its policy", getPolicy),
		Entry("reading PodDisruptionBudgets", listBudgets),
		Entry("reading a namespace", getNamespace),
		Entry("reading the claim of an own pod", getClaim("data-n1")),
		Entry("reading the volume of an own pod", getVolume("data-n1")),
		// What remains possible before Kubernetes 1.36, as described in the overlay's
		// kustomization.
		Entry("reading the claim of another node's pod", getClaim("data-n2")),
		Entry("reading the volume of another node's pod", getVolume("data-n2")),
		Entry("evicting another node's pod", evictPodOf("n2")),
		Entry("reading another node", getNode("n2")),
		Entry("listing all nodes", listNodes("")),
		Entry("listing all pods", listPods("")),
		Entry("listing another node's pods", listPods("n2")),
		Entry("watching another node's pods", watchPods("n2")),
		Entry("a progress that is not true, on the own node", patchNode("n1", forgedProgress)),
	)

	DescribeTable("refuses, with a sentence that gives the reason", func(ctx SpecContext, as string, try attempt, why any) {
		expectRefused(try(ctx, who[as]), why)
		keep(sectionFallback, as, who[as])
	},
		Entry("cordoning another node", agent, patchNode("n2", cordon),
			"the agent of node n1 may not write node n2"),
		Entry("reporting on another node", agent, patchNode("n2", report, "status"),
			"the agent of node n1 may not write node n2"),
		Entry("a progress that is not true, on another node", agent, patchNode("n2", forgedProgress),
			"the agent of node n1 may not write node n2"),
		Entry("a grant that nobody gave, on another node", agent, patchNode("n2", forgedGrant),
			orGrant("the agent of node n1 may not write node n2")),
		Entry("cordoning", unbound, patchNode("n1", cordon),
			"the token names no node: an agent needs a token bound to its pod (Kubernetes 1.30 or later)"),
		Entry("deleting another node's pod", agent, deletePodOf("n2"),
			"the agent of node n1 may not delete a pod of another node"),
		Entry("another's label", agent, patchNode("n1", labelled("node-role.kubernetes.io/control-plane", "")),
			"an agent may only change its own labels"),
		Entry("changing a label that is there", agent, patchNode("n1", labelled("zone", "b")),
			"an agent may only change its own labels"),
		Entry("removing a label that is there", agent, patchNode("n1", labelled("zone", nil)),
			"an agent may only change its own labels"),
		Entry("the manager's label, by the status", agent, patchNode("n1", labelled("reboot-operator.io/after-reboot", "true"), "status"),
			orGrant("an agent may only change its own labels")),
		Entry("granting itself a reboot", agent, patchNode("n1", annotated("reboot-operator.io/grant", "{}")),
			orGrant("an agent may only change its own annotations")),
		Entry("granting itself a reboot, by the status", agent, patchNode("n1", annotated("reboot-operator.io/grant", "{}"), "status"),
			orGrant("an agent may only change its own annotations")),
		Entry("asking for a reboot in an administrator's name", agent, patchNode("n1", annotated("reboot-operator.io/reboot-requested", "me")),
			"an agent may only change its own annotations"),
		Entry("a finalizer", agent, patchNode("n1", object{"metadata": object{"finalizers": []string{"example.com/mine"}}}),
			"an agent may not change finalizers or ownerReferences"),
		Entry("a taint", agent, patchNode("n1", taint),
			"of the spec an agent may only change unschedulable"),
		Entry("the provider's ID", agent, patchNode("n1", object{"spec": object{"providerID": "aws://1"}}),
			"of the spec an agent may only change unschedulable"),
		Entry("the boot ID", agent, patchNode("n1", object{"status": object{"nodeInfo": object{"bootID": "b2"}}}, "status"),
			"of the status an agent may only change conditions"),
		Entry("its capacity", agent, patchNode("n1", object{"status": object{"capacity": object{"pods": "1000"}}}, "status"),
			"of the status an agent may only change conditions"),
		Entry("the kubelet's condition", agent, patchNode("n1", conditioned("Ready"), "status"),
			"an agent may only change its own conditions"),
		Entry("the manager's condition", agent, patchNode("n1", conditioned("RebootPermitted"), "status"),
			"an agent may only change its own conditions"),
		Entry("removing the kubelet's condition", agent, patchNode("n1", object{"status": object{
			"conditions": []object{{"type": "Ready", "$patch": "delete"}},
		}}, "status"), "an agent may only change its own conditions"),
		Entry("deleting a pod", unbound, deletePodOf("n1"), "may not delete a pod of another node"),
		Entry("writing an event of another namespace", agent, createEventIn(metav1.NamespaceSystem), "cannot create resource"),
		Entry("making a node", agent, createNode, "cannot create resource"),
		Entry("deleting the own node", agent, deleteNode("n1"), "cannot delete resource"),
		Entry("the heartbeat of another node", agent, heartbeatOf("n2"), "cannot update resource"),
		Entry("an entry in the ledger", agent, forgeLedger, "cannot patch resource"),
		Entry("making a token of the manager", agent, createToken, "cannot create resource"),
		Entry("making a DaemonSet", agent, createDaemonSet, "cannot create resource"),
		Entry("widening its own role", agent, widenRole, "cannot update resource"),
		Entry("taking the fence down", agent, deleteFence, "cannot delete resource"),
		Entry("writing a policy", agent, patchPolicy, "cannot patch resource"),
		Entry("reading secrets", agent, listSecrets, "cannot list resource"),
		Entry("making a pod", agent, createPod, "cannot create resource"),
		Entry("listing claims", agent, listClaims, "cannot list resource"),
		Entry("listing volumes", agent, listVolumes, "cannot list resource"),
		Entry("deleting a claim", agent, deleteClaim("data-n1"), "cannot delete resource"),
		Entry("reading the node, which takes 1.36", node, getNode("n1"), "cannot impersonate"),
	)

	It("lets the agent remove the manager's answer, but not write one", func(ctx SpecContext) {
		granted := object{"status": object{"conditions": []object{{"type": "RebootPermitted", "status": "True", "reason": "Granted"}}}}
		Expect(send(http.MethodPatch, nodes+"/n1/status", types.StrategicMergePatchType, granted)(ctx, c.admin)).To(Succeed())
		Expect(patchNode("n1", conditioned("RebootPermitted"), "status")(ctx, who[agent])).To(Satisfy(apierrors.IsForbidden))
		expectAllowed(ctx, who[agent], patchNode("n1", object{"status": object{
			"conditions": []object{{"type": "RebootPermitted", "$patch": "delete"}},
		}}, "status"))
	})

	It("holds for every verb of every resource", func(ctx SpecContext) {
		keepEverything(ctx, c, sectionFallback, agent, who[agent], mighty+`|^(update|patch|delete).*(n2|rebootpolicies)`)
		keepEverything(ctx, c, sectionFallback, unbound, who[unbound], mighty+`|^(update|patch|delete).*(nodes|pods|rebootpolicies)`)
		keepEverything(ctx, c, sectionFallback, node, who[node], ".")
	})

	It("holds even if a role allows more", func(ctx SpecContext) {
		c.bind(ctx, "cluster-admin", "system:serviceaccount:"+namespace+":"+agentAccount)
		expectAllowed(ctx, who[agent], listSecrets)
		for _, try := range []attempt{createNode, deleteNode("n1")} {
			Expect(try(ctx, who[agent])).To(MatchError(ContainSubstring("an agent may only update its Node and its status")))
		}
	})

	DescribeTable("holds wherever it is deployed", func(ctx SpecContext, user string) {
		config := c.impersonated(user, "system:masters")
		config.Impersonate.Extra = map[string][]string{"authentication.kubernetes.io/node-name": {"n1"}}
		elsewhere := actorOf(config)
		expectAllowed(ctx, elsewhere, patchNode("n1", cordon))
		Expect(patchNode("n2", cordon)(ctx, elsewhere)).To(MatchError(ContainSubstring("may not write node n2")))
		Expect(deletePodOf("n2")(ctx, elsewhere)).To(MatchError(ContainSubstring("may not delete a pod of another node")))
	},
		Entry("in another namespace", "system:serviceaccount:infra:reboot-operator-agent"),
		Entry("with a prefix", "system:serviceaccount:reboot-operator-system:x-reboot-operator-agent"),
	)
})

// orGrant matches the message, or that of the policy that protects the manager's record, because
// either may refuse first.
func orGrant(sentence string) gomegatypes.GomegaMatcher {
	return Or(ContainSubstring(sentence), ContainSubstring("may not write what the manager writes on a Node"))
}

// expectRefused expects that the API server forbids something with a message that contains a text
// or satisfies a matcher.
func expectRefused(err error, why any) {
	GinkgoHelper()
	Expect(err).To(Satisfy(apierrors.IsForbidden))
	matcher, ok := why.(gomegatypes.GomegaMatcher)
	if !ok {
		matcher = ContainSubstring(fmt.Sprint(why))
	}
	Expect(err).To(MatchError(matcher))
}
