package config_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

type object = map[string]any

// constrainedImpersonation is the label of specs that need Kubernetes 1.36, because agents cannot
// act as their Nodes before.
var constrainedImpersonation = Label("constrained-impersonation")

// What the agent on node n1 writes: start, commit, and the end of an attempt.
var (
	cordon = object{
		"metadata": object{"annotations": object{"reboot-operator.io/progress": `{"seq":1}`}},
		"spec":     object{"unschedulable": true},
	}
	report = object{
		"metadata": object{
			"labels": object{
				"reboot-operator.io/reboot-required": "true", "reboot-operator.io/os-id": "flatcar", "reboot-operator.io/reboot-requested": nil,
			},
			"annotations": object{
				"reboot-operator.io/report":           "{}",
				"reboot-operator.io/engines":          "{}",
				"reboot-operator.io/booted-at":        "2026-11-23T06:12:40Z",
				"reboot-operator.io/reboot-requested": nil,
			},
		},
		"status": object{"conditions": []object{
			{"type": "RebootRequired", "status": "True", "reason": "UpdateStaged"},
			{"type": "MaintenanceInProgress", "status": "True", "reason": "Rebooting"},
		}},
	}
	taint = object{"spec": object{"taints": []object{{"key": "dedicated", "value": "db", "effect": "NoExecute"}}}}
)

// Behaviour 55: an agent can write its own node, and no other.
var _ = Describe("identity node (constrained impersonation) (behaviour 55)", constrainedImpersonation, Ordered, ContinueOnFailure, func() {
	const (
		node1   = "as node n1"
		node2   = "as node n2"
		itself  = "in its own name"
		unbound = "a token of no pod, as node n1"
		nobody  = "a token of no pod"
	)
	var who map[string]*actor
	var token string

	BeforeAll(func(ctx SpecContext) {
		token = shipped.tokenOf(ctx, agentAccount, shipped.agents["n1"])
		free := shipped.tokenOf(ctx, agentAccount, nil)
		who = map[string]*actor{
			node1: shipped.as(token, "system:node:n1"), node2: shipped.as(token, "system:node:n2"), itself: shipped.as(token, ""),
			unbound: shipped.as(free, "system:node:n1"), nobody: shipped.as(free, ""),
		}
		// From here on a refusal is a decision, and not a role that has not arrived yet.
		expectAllowed(ctx, who[node1], getNode("n1"))
		expectAllowed(ctx, who[node1], evictPodOf("n1"))
		expectAllowed(ctx, who[itself], getPolicy)
		expectForbidden(ctx, who[node1], patchNode("n1", forgedGrant))
	})

	DescribeTable("allows", func(ctx SpecContext, as string, try attempt) {
		expectAllowed(ctx, who[as], try)
		keep(sectionAgent, as, who[as])
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
		Entry("writing an event", node1, createEvent),
		// What a kubelet may, and so whoever has the token: it is the same machine's.
		Entry("a progress that is not true, on the own node", node1, patchNode("n1", forgedProgress)),
		Entry("another boot ID of the own node", node1, patchNode("n1", forgedBoot, "status")),
		Entry("an administrator's request on the own node", node1, patchNode("n1", forgedRequest)),
		Entry("reading its policy", itself, getPolicy),
		Entry("reading PodDisruptionBudgets", itself, listBudgets),
		Entry("reading a namespace", itself, getNamespace),
	)

	DescribeTable("refuses", func(ctx SpecContext, as string, try attempt) {
		Expect(try(ctx, who[as])).To(Satisfy(apierrors.IsForbidden))
		keep(sectionAgent, as, who[as])
	},
		Entry("reading another node", node1, getNode("n2")),
		Entry("listing all nodes", node1, listNodes("")),
		Entry("watching all nodes", node1, watchNodes("")),
		Entry("cordoning another node", node1, patchNode("n2", cordon)),
		Entry("reporting on another node", node1, patchNode("n2", report, "status")),
		Entry("a grant that nobody gave, on another node", node1, patchNode("n2", forgedGrant)),
		Entry("a grant that nobody gave, on the own node", node1, patchNode("n1", forgedGrant)),
		Entry("a grant that nobody gave, on the own node, by the status", node1, patchNode("n1", forgedGrant, "status")),
		Entry("the manager's label, on the own node", node1, patchNode("n1", labelled("reboot-operator.io/after-reboot", "true"))),
		Entry("another boot ID of another node", node1, patchNode("n2", forgedBoot, "status")),
		Entry("a label that schedules by role", node1, patchNode("n1", forgedRole)),
		Entry("a label that is reserved", node1, patchNode("n1", forgedRestricted)),
		Entry("changing taints of the own node", node1, patchNode("n1", taint)),
		Entry("listing all pods", node1, listPods("")),
		Entry("listing another node's pods", node1, listPods("n2")),
		Entry("watching another node's pods", node1, watchPods("n2")),
		Entry("evicting another node's pod", node1, evictPodOf("n2")),
		Entry("deleting another node's pod", node1, deletePodOf("n2")),
		Entry("reading the claim of another node's pod", node1, getClaim("data-n2")),
		Entry("reading the volume of another node's pod", node1, getVolume("data-n2")),
		Entry("reading the claim that lives with another node's pod", node1, getClaim("db-n2-scratch")),
		Entry("listing claims", node1, listClaims),
		Entry("listing volumes", node1, listVolumes),
		Entry("deleting the claim of an own pod", node1, deleteClaim("data-n1")),
		Entry("making a pod, which a kubelet may", node1, createPod),
		Entry("making a token, which a kubelet may", node1, createToken),
		Entry("reading secrets", node1, listSecrets),
		Entry("reading the secret that a pod of the own node mounts, which a kubelet may", node1, getMountedSecret),
		Entry("writing an event of another namespace", node1, createEventIn(metav1.NamespaceSystem)),
		Entry("making a node", node1, createNode),
		Entry("deleting the own node", node1, deleteNode("n1")),
		Entry("the heartbeat of another node", node1, heartbeatOf("n2")),
		Entry("an entry in the ledger", node1, forgeLedger),
		Entry("writing an event", itself, createEvent),
		Entry("an entry in the ledger", itself, forgeLedger),
		Entry("making a token of the manager", itself, createToken),
		Entry("making a DaemonSet", itself, createDaemonSet),
		Entry("widening its own role", itself, widenRole),
		Entry("writing a policy", node1, patchPolicy),

		Entry("reading that node", node2, getNode("n2")),
		Entry("cordoning that node", node2, patchNode("n2", cordon)),
		Entry("evicting a pod of that node", node2, evictPodOf("n2")),
		Entry("reading the node", unbound, getNode("n1")),
		Entry("cordoning", unbound, patchNode("n1", cordon)),
		Entry("reading the node", nobody, getNode("n1")),
		Entry("evicting", nobody, evictPodOf("n1")),

		Entry("reading a claim", itself, getClaim("data-n1")),
		Entry("reading a volume", itself, getVolume("data-n1")),
		Entry("reading the node", itself, getNode("n1")),
		Entry("cordoning", itself, patchNode("n1", cordon)),
		Entry("listing pods", itself, listPods("n1")),
		Entry("evicting", itself, evictPodOf("n1")),
		Entry("writing a policy", itself, patchPolicy),
		Entry("reading secrets", itself, listSecrets),
	)

	DescribeTable("is not to be had by", func(ctx SpecContext, whom rest.ImpersonationConfig) {
		a := shipped.impersonating(token, whom)
		Expect(getNode("n1")(ctx, a)).To(Satisfy(apierrors.IsForbidden))
		keep(sectionAgent, itself, a)
	},
		Entry("being the administrator", rest.ImpersonationConfig{UserName: "kubernetes-admin"}),
		Entry("being in system:masters", rest.ImpersonationConfig{UserName: "me", Groups: []string{"system:masters"}}),
		Entry("being the own node in system:masters", rest.ImpersonationConfig{UserName: "system:node:n1", Groups: []string{"system:masters"}}),
		Entry("being the manager", rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + managerAccount}),
		Entry("being the agent of another node, by the claim of the token", rest.ImpersonationConfig{
			UserName: "system:serviceaccount:" + namespace + ":" + agentAccount,
			Extra:    map[string][]string{"authentication.kubernetes.io/node-name": {"n2"}},
		}),
		Entry("being kube-controller-manager", rest.ImpersonationConfig{UserName: "system:kube-controller-manager"}),
	)

	It("holds for every verb of every resource", func(ctx SpecContext) {
		keepEverything(ctx, shipped, sectionAgent, node1, who[node1], mighty+"|n2|rebootpolicies|list|watch")
		keepEverything(ctx, shipped, sectionAgent, itself, who[itself], mighty+"|nodes|pods|^(update|patch|delete)")
		keepEverything(ctx, shipped, sectionAgent, node2, who[node2], ".")
		keepEverything(ctx, shipped, sectionAgent, unbound, who[unbound], ".")
		keepEverything(ctx, shipped, sectionAgent, nobody, who[nobody], mighty+"|nodes|pods|^(update|patch|delete)")
	})
})
