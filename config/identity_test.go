package config_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
)

type object = map[string]any

// What the agent on node n1 writes: start, commit, and the end of an attempt.
var (
	cordon = object{
		"metadata": object{"annotations": object{"reboot-operator.io/progress": `{"seq":1}`}},
		"spec":     object{"unschedulable": true},
	}
	report = object{
		"metadata": object{
			"labels": object{"reboot-operator.io/reboot-required": "true", "reboot-operator.io/os-id": "flatcar"},
			"annotations": object{
				"reboot-operator.io/objection": "{}", "reboot-operator.io/reboot-requested": nil, "reboot-operator.io/forget-need": nil,
			},
		},
		"status": object{"conditions": []object{
			{"type": "RebootRequired", "status": "True", "reason": "UpdateStaged"},
			{"type": "MaintenanceInProgress", "status": "True", "reason": "Rebooting"},
		}},
	}
	taint = object{"spec": object{"taints": []object{{"key": "dedicated", "value": "db", "effect": "NoExecute"}}}}
)

// Behaviour 55: an agent writes its own node and no other, whatever it tries.
var _ = Describe("identity node (constrained impersonation) (behaviour 55)", Ordered, ContinueOnFailure, func() {
	const (
		node1    = "as node n1"
		node2    = "as node n2"
		itself   = "as itself"
		unbound  = "as node n1 with a token of no pod"
		stranger = "as the administrator"
	)
	var who map[string]kubernetes.Interface

	BeforeAll(func(ctx SpecContext) {
		c := start(ctx, "config/default")
		c.createPolicy(ctx)
		token := c.tokenOf(ctx, agentAccount, c.agents["n1"])
		who = map[string]kubernetes.Interface{
			node1:    c.as(token, "system:node:n1"),
			node2:    c.as(token, "system:node:n2"),
			itself:   c.as(token, ""),
			unbound:  c.as(c.tokenOf(ctx, agentAccount, nil), "system:node:n1"),
			stranger: c.as(token, "kubernetes-admin"),
		}
		// From here on a refusal is a decision, and not a role that has not arrived yet.
		expectAllowed(ctx, who[node1], getNode("n1"))
		expectAllowed(ctx, who[node1], evictPodOf("n1"))
		expectAllowed(ctx, who[itself], getPolicy)
	})

	DescribeTable("allows", func(ctx SpecContext, as string, try attempt) {
		expectAllowed(ctx, who[as], try)
	},
		Entry("reading the own node", node1, getNode("n1")),
		Entry("listing the own node", node1, listNodes("n1")),
		Entry("watching the own node", node1, watchNodes("n1")),
		Entry("cordoning the own node", node1, patchNode("n1", cordon)),
		Entry("reporting on the own node", node1, patchNode("n1", report, "status")),
		Entry("listing the own pods", node1, listPods("n1")),
		Entry("watching the own pods", node1, watchPods("n1")),
		Entry("evicting an own pod", node1, evictPodOf("n1")),
		Entry("deleting an own pod", node1, deletePodOf("n1")),
		Entry("reading the claim of an own pod", node1, getClaim("data-n1")),
		Entry("reading the volume of an own pod", node1, getVolume("data-n1")),
		Entry("reading the claim that lives with an own pod", node1, getClaim("db-n1-scratch")),
		Entry("reading the volume that lives with an own pod", node1, getVolume("db-n1-scratch")),
		Entry("writing an event", node1, attempt(createEvent)),
		Entry("reading its policy", itself, attempt(getPolicy)),
		Entry("reading PodDisruptionBudgets", itself, attempt(listBudgets)),
		Entry("reading a namespace", itself, attempt(getNamespace)),
	)

	DescribeTable("refuses", func(ctx SpecContext, as string, try attempt) {
		Expect(try(ctx, who[as])).To(Satisfy(apierrors.IsForbidden))
	},
		Entry("reading another node", node1, getNode("n2")),
		Entry("listing all nodes", node1, listNodes("")),
		Entry("watching all nodes", node1, watchNodes("")),
		Entry("cordoning another node", node1, patchNode("n2", cordon)),
		Entry("reporting on another node", node1, patchNode("n2", report, "status")),
		Entry("changing taints of the own node", node1, patchNode("n1", taint)),
		Entry("listing all pods", node1, listPods("")),
		Entry("listing another node's pods", node1, listPods("n2")),
		Entry("watching another node's pods", node1, watchPods("n2")),
		Entry("evicting another node's pod", node1, evictPodOf("n2")),
		Entry("deleting another node's pod", node1, deletePodOf("n2")),
		Entry("reading the claim of another node's pod", node1, getClaim("data-n2")),
		Entry("reading the volume of another node's pod", node1, getVolume("data-n2")),
		Entry("reading the claim that lives with another node's pod", node1, getClaim("db-n2-scratch")),
		Entry("listing claims", node1, attempt(listClaims)),
		Entry("listing volumes", node1, attempt(listVolumes)),
		Entry("deleting the claim of an own pod", node1, deleteClaim("data-n1")),
		Entry("making a pod, which a kubelet may", node1, attempt(createPod)),
		Entry("making a token, which a kubelet may", node1, attempt(createToken)),
		Entry("reading secrets", node1, attempt(listSecrets)),
		Entry("writing a policy as the node", node1, attempt(patchPolicy)),

		Entry("being another node", node2, getNode("n2")),
		Entry("cordoning as another node", node2, patchNode("n2", cordon)),
		Entry("being somebody else", stranger, getNode("n1")),
		Entry("a token that is bound to no pod", unbound, getNode("n1")),
		Entry("writing with a token that is bound to no pod", unbound, patchNode("n1", cordon)),

		Entry("reading the node in its own name", itself, getNode("n1")),
		Entry("cordoning in its own name", itself, patchNode("n1", cordon)),
		Entry("listing pods in its own name", itself, listPods("n1")),
		Entry("evicting in its own name", itself, evictPodOf("n1")),
		Entry("reading a claim in its own name", itself, getClaim("data-n1")),
		Entry("reading a volume in its own name", itself, getVolume("data-n1")),
		Entry("writing a policy in its own name", itself, attempt(patchPolicy)),
		Entry("reading secrets in its own name", itself, attempt(listSecrets)),
	)
})
