package config_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// A stolen token of the manager can grant reboots of every node. It must not write other fields of
// Nodes and policies, change pods, see pods elsewhere, or forge more than the ledger allows.
var _ = Describe("the manager's token", Ordered, ContinueOnFailure, func() {
	const manager = "manager"
	var token string
	var it *actor

	BeforeAll(func(ctx SpecContext) {
		token = shipped.tokenOf(ctx, managerAccount, nil)
		it = shipped.as(token, "")
		expectAllowed(ctx, it, patchNode("n1", forgedGrant))
		expectForbidden(ctx, it, patchNode("n2", owned))
		expectForbidden(ctx, it, patchPolicy)
		// A full ledger, as the manager writes it.
		for _, patch := range []string{`{"status":{"seq":8,"limit":1}}`, `{"status":{"grants":[` + entryOf("n1", "8") + `]}}`} {
			Expect(updateLedger(ctx, it, patch, "")).To(Succeed())
		}
	})

	DescribeTable("allows", func(ctx SpecContext, try attempt) {
		expectAllowed(ctx, it, try)
		keep(sectionManager, manager, it)
	},
		Entry("watching all nodes", watchNodes("")),
		Entry("a grant on any node, with or without a ledger", patchNode("n2", forgedGrant)),
		Entry("a grant on any node, by the status, with the condition and the annotations of autoscalers", patchNode("n2", granted, "status")),
		Entry("the taint of nodes that wait", patchNode("n2", tainted(pending("PreferNoSchedule")))),
		Entry("the taint of nodes that wait for a pod", patchNode("n2", tainted(pending("NoSchedule")))),
		Entry("taking that taint away", patchNode("n4", tainted())),
		Entry("the label that keeps load balancers off a node, with its own value", patchNode("n2", labelled(v1alpha1.LabelExcludeFromLoadBalancers, "reboot-operator"), "status")),
		Entry("taking that label away", patchNode("n4", labelled(v1alpha1.LabelExcludeFromLoadBalancers, nil))),
		Entry("the label that keeps health controllers off a node", patchNode("n2", labelled(v1alpha1.LabelExcludeFromRemediation, "true"), "status")),
		Entry("uncordoning any node", patchNode("n4", object{"spec": object{"unschedulable": nil}})),
		Entry("asking hooks, whose last answers go", patchNode("n2", askedHooks, "status")),
		Entry("the end of hooks, whose answers go", patchNode("n4", endedHooks, "status")),
		Entry("its condition", patchNode("n2", conditioned("RebootPermitted"), "status")),
		Entry("its other condition", patchNode("n2", conditioned("RebootFailed"), "status")),
		Entry("the condition that announces a maintenance", patchNode("n2", conditioned("MaintenancePlanned"), "status")),
		Entry("watching policies", watchPolicies),
		Entry("its finalizer on a policy", mergeIntoPolicy(`{"metadata":{"finalizers":["reboot-operator.io/grants"]}}`)),
		Entry("taking the resume annotation from a policy", mergeIntoPolicy(`{"metadata":{"annotations":{"reboot-operator.io/resume":null}}}`)),
		Entry("a release in the ledger", writeLedger(`{"status":{"grants":[]}}`)),
		Entry("writing an event", createEvent),
		Entry("its own lease", leaseIn(namespace)),
		Entry("asking who scrapes, and what they may", createReview),
		Entry("reading a secret in its namespace by name", getMountedSecret),
		Entry("listing the pods in its namespace", get(ownPods)),
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
		Entry("making a policy", createAnotherPolicy),
		Entry("deleting a policy", deletePolicy),
		Entry("writing an event of another namespace", createEventIn(metav1.NamespaceSystem)),
		Entry("making a node", createNode),
		Entry("deleting a node", deleteNode("n2")),
		Entry("the heartbeat of a node", heartbeatOf("n2")),
		Entry("listing pods", listPods("")),
		Entry("watching pods", watchPods("n1")),
		Entry("making a pod", createPod),
		Entry("evicting a pod", evictPodOf("n1")),
		Entry("deleting a pod", deletePodOf("n1")),
		Entry("reading any secret", listSecrets),
		Entry("listing the secrets in its namespace", listSecretsOf(namespace)),
		Entry("reading a secret of another namespace", getSecret(metav1.NamespaceSystem, "x")),
		Entry("making a token for itself", createToken),
		Entry("making a DaemonSet", createDaemonSet),
		Entry("a DaemonSet of the agents' name", applyDaemonSet(namespace, agentAccount)),
		Entry("looking at DaemonSets", listDaemonSets),
		Entry("a lease elsewhere, such as kube-scheduler's", leaseIn(metav1.NamespaceSystem)),
		Entry("widening a role", widenRole),
	)

	const (
		labels      = "the manager may only change its own labels"
		annotations = "the manager may only change its own annotations"
		removed     = "the manager may only remove its own annotations and the answers of hooks"
		meta        = "the manager may not change finalizers or ownerReferences"
		spec        = "of the spec the manager may only remove the cordon"
		status      = "of the status the manager may only change conditions"
		conditions  = "the manager may only change its own conditions: RebootPermitted, RebootFailed and MaintenancePlanned"
		polSpec     = "the manager may not change spec, labels or ownerReferences of a RebootPolicy"
	)

	DescribeTable("refuses, with a sentence that gives the reason", func(ctx SpecContext, try attempt, why any) {
		expectRefused(try(ctx, it), why)
		keep(sectionManager, manager, it)
	},
		Entry("cordoning any node", patchNode("n2", object{"spec": object{"unschedulable": true}}), spec),
		Entry("a taint that evicts pods", patchNode("n2", tainted(object{"key": "x", "effect": "NoExecute"})), spec),
		Entry("its taint with an effect that evicts pods", patchNode("n2", tainted(pending("NoExecute"))), spec),
		Entry("taking another's taint away", patchNode("n2", object{"spec": object{"taints": nil}}), spec),
		Entry("the pod network of a node", patchNode("n2", object{"spec": object{"podCIDR": "10.9.0.0/24", "podCIDRs": []string{"10.9.0.0/24"}}}), spec),
		Entry("the provider's ID of a node", patchNode("n2", object{"spec": object{"providerID": "aws://1"}}), spec),
		Entry("an owner of a node, with whom it would be deleted", patchNode("n2", owned), meta),
		Entry("an owner of a node, by the status", patchNode("n2", owned, "status"), meta),
		Entry("a finalizer on a node", patchNode("n2", object{"metadata": object{"finalizers": []string{"example.com/mine"}}}), meta),
		Entry("a label that schedules by role", patchNode("n2", forgedRole), labels),
		Entry("a label that schedules by role, by the status", patchNode("n2", forgedRole, "status"), labels),
		Entry("taking a label away", patchNode("n2", labelled("zone", nil)), labels),
		Entry("the label that keeps load balancers off a node, with another value", patchNode("n2", labelled(v1alpha1.LabelExcludeFromLoadBalancers, "true")), labels),
		Entry("changing that label", patchNode("n4", labelled(v1alpha1.LabelExcludeFromLoadBalancers, "true")), labels),
		Entry("the label that keeps health controllers off a node, with another value", patchNode("n2", labelled(v1alpha1.LabelExcludeFromRemediation, "x")), labels),
		Entry("taking another's label that keeps load balancers off a node away", patchNode("n1", labelled(v1alpha1.LabelExcludeFromLoadBalancers, nil)), labels),
		Entry("the agent's label", patchNode("n2", labelled("reboot-operator.io/reboot-required", "true")), orReport(labels)),
		Entry("the agent's progress", patchNode("n2", forgedProgress), orReport(annotations)),
		Entry("asking for a reboot in an administrator's name", patchNode("n2", forgedRequest), annotations),
		Entry("taking an administrator's annotation away", patchNode("n4", annotated("reboot-operator.io/reboot-requested", nil)), removed),
		Entry("taking an annotation away that no hook answers by", patchNode("n4", annotated("example.com/other", nil)), removed),
		Entry("calling another's annotation a hook, and taking it away", patchNode("n4", calledHook("csi.volume.kubernetes.io/nodeid")), removed),
		Entry("calling an administrator's annotation a hook, and taking it away", patchNode("n4", calledHook("reboot-operator.io/reboot-requested")), removed),
		Entry("the address of a kubelet", patchNode("n2", object{"status": object{"addresses": []object{{"type": "InternalIP", "address": "192.0.2.1"}}}}, "status"), status),
		Entry("the port of a kubelet", patchNode("n2", object{"status": object{"daemonEndpoints": object{"kubeletEndpoint": object{"Port": 1}}}}, "status"), status),
		Entry("the capacity of a node", patchNode("n2", object{"status": object{"capacity": object{"pods": "1000"}}}, "status"), status),
		Entry("what pods may use of a node", patchNode("n2", object{"status": object{"allocatable": object{"pods": "0"}}}, "status"), status),
		Entry("another boot ID of a node", patchNode("n2", forgedBoot, "status"), status),
		Entry("the kubelet's condition", patchNode("n2", conditioned("Ready"), "status"), conditions),
		Entry("the agent's condition", patchNode("n2", forgedNeed, "status"), conditions),
		Entry("changing a policy's spec", patchPolicy, polSpec),
		Entry("ending a halt", mergeIntoPolicy(`{"metadata":{"annotations":{"reboot-operator.io/resume":"me"}}}`), "of a RebootPolicy's annotations the manager may only remove reboot-operator.io/resume"),
		Entry("a label on a policy", mergeIntoPolicy(`{"metadata":{"labels":{"team":"x"}}}`), polSpec),
		Entry("an owner of a policy, with whom it would be deleted", mergeIntoPolicy(ownedPolicy), polSpec),
		Entry("another's finalizer on a policy", mergeIntoPolicy(`{"metadata":{"finalizers":["example.com/mine"]}}`), "the manager may only change its own finalizer"),
	)

	It("does not remove annotations that no hook can have, such as Karpenter's", func(ctx SpecContext) {
		for _, key := range noHooks {
			expectRefused(patchNode("n4", calledHook(key))(ctx, it), removed)
			policy := object{"apiVersion": "reboot-operator.io/v1alpha1", "kind": "RebootPolicy", "metadata": object{"name": "q"}, "spec": object{"hooks": object{"before": []string{key}}}}
			Expect(post(policies+dry, policy)(ctx, shipped.admin)).To(Satisfy(apierrors.IsInvalid))
		}
	})

	DescribeTable("is not to be had by", func(ctx SpecContext, whom rest.ImpersonationConfig) {
		a := shipped.impersonating(token, whom)
		Expect(getNode("n1")(ctx, a)).To(HaveOccurred())
		keep(sectionManager, manager, a)
	},
		Entry("being a node", rest.ImpersonationConfig{UserName: "system:node:n1"}),
		Entry("being the agent", rest.ImpersonationConfig{UserName: "system:serviceaccount:" + namespace + ":" + agentAccount}),
		Entry("being in system:masters", rest.ImpersonationConfig{UserName: "me", Groups: []string{"system:masters"}}),
	)

	DescribeTable("is held wherever the manager is deployed", func(ctx SpecContext, user string) {
		shipped.bind(ctx, managerAccount, user)
		elsewhere := actorOf(shipped.impersonated(user))
		expectAllowed(ctx, elsewhere, patchNode("n2", forgedGrant))
		Expect(patchNode("n2", owned)(ctx, elsewhere)).To(MatchError(ContainSubstring("the manager may not change finalizers or ownerReferences")))
		Expect(patchPolicy(ctx, elsewhere)).To(MatchError(ContainSubstring("the manager may not change spec")))
	},
		Entry("in another namespace", "system:serviceaccount:infra:reboot-operator-manager"),
		Entry("with a prefix", "system:serviceaccount:reboot-operator-system:x-reboot-operator-manager"),
	)

	It("holds for every verb of every resource", func(ctx SpecContext) {
		keepEverything(ctx, shipped, sectionManager, manager, it, strings.ReplaceAll(mighty, "secrets", "secrets.* in kube-system|(list|watch|create|update|patch|delete).* secrets")+"|^(get|create|update|patch) pods|pods/|^delete|daemonsets")
	})
})

// orReport matches the message, or that of the policy that protects the agents' record, because
// either may refuse first.
func orReport(sentence string) types.GomegaMatcher {
	return Or(ContainSubstring(sentence), ContainSubstring("it takes verb report on noderecords.reboot-operator.io"))
}

// writeLedger tries to replace the ledger like the manager.
func writeLedger(change string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		return updateLedger(ctx, c, change, dry)
	}
}

// updateLedger merges a change into the current policy.
func updateLedger(ctx context.Context, c kubernetes.Interface, change, query string) error {
	policy, err := c.Discovery().RESTClient().Get().AbsPath(policyPath).DoRaw(ctx)
	if err == nil {
		policy, err = jsonpatch.MergePatch(policy, []byte(change))
	}
	if err != nil {
		return err
	}
	return put(policyPath+"/status"+query, json.RawMessage(policy))(ctx, c)
}

func entryOf(node, seq string) string {
	return `{"node":"` + node + `","seq":` + seq + `,"bootID":"b1","at":"2026-11-21T00:00:00Z"}`
}

var (
	watchPolicies       = get(policies + "?watch=1")
	createAnotherPolicy = post(policies+dry, json.RawMessage(
		`{"apiVersion":"reboot-operator.io/v1alpha1","kind":"RebootPolicy","metadata":{"name":"q"}}`))
	deletePolicy = remove(policyPath + dry)
	createReview = post("/apis/authorization.k8s.io/v1/subjectaccessreviews", object{
		"spec": object{"user": "prometheus", "nonResourceAttributes": object{"path": "/metrics", "verb": "get"}},
	})
)

func leaseIn(namespace string) attempt {
	return post(leasesIn(namespace)+dry, object{"metadata": object{"name": "reboot-operator"}})
}
