package plan_test

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func gateSequences() map[string]sequence {
	return map[string]sequence{
		"gate-fires-in-mid-rollout": {
			about: "The gate has to be clear first. It fires while worker-1 drains, which finishes; worker-2, whose agent has not begun, " +
				"is cancelled, and worker-3 waits. Then the gate cannot be queried, which does not count as clear, and then it is clear.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("2"), gated("errors"))},
			hosts:    []*host{needy("worker-1", needsSince(5*time.Hour)), needy("worker-2", slow(4*minute), needsSince(4*time.Hour)), needy("worker-3")},
			script: []act{
				{minute, "the gate is queried, and is clear", gatesAnswer("workers", quiet("errors"))},
				{2 * minute, "the gate fires", gatesAnswer("workers", firing("errors"))},
				{20 * minute, "Prometheus is down", gatesAnswer("workers", unreachable("errors"))},
				{40 * minute, "the gate is clear again", gatesAnswer("workers", quiet("errors"))},
			},
		},
		"object-gate": {
			about: "Ceph has to be healthy before each reboot. At first it is not. Once it is, worker-1 goes, and then Ceph recovers for " +
				"half an hour, during which worker-2 waits. For a while the object cannot be read, which does not count as healthy.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", gatedByObject)},
			hosts:    []*host{needy("worker-1", needsSince(5*time.Hour)), needy("worker-2")},
			script: []act{
				{minute, "Ceph is not healthy", gatesAnswer("workers", notReadyObject(ceph))},
				{20 * minute, "Ceph is healthy", gatesAnswer("workers", quiet(ceph))},
				{22 * minute, "Ceph is not healthy", gatesAnswer("workers", notReadyObject(ceph))},
				{40 * minute, "the object cannot be read", gatesAnswer("workers", unreachable(ceph))},
				{52 * minute, "Ceph is healthy", gatesAnswer("workers", quiet(ceph))},
			},
		},
	}
}

// pods returns stories about pods that block the reboot of their node.
func pods() map[string]sequence {
	return map[string]sequence{
		"blocking-pod": {
			about: "Pods of gates.blockingPods run on the two nodes that have waited longest: they are passed over until the pods are gone. " +
				"A node of whose pods nothing is known waits, too.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", waitsForPods)},
			hosts: []*host{
				needy("worker-1", needsSince(5*time.Hour), blockedBy("default/migrate-1")),
				needy("worker-2", needsSince(4*time.Hour), blockedBy("default/migrate-2", "default/migrate-3")),
				needy("worker-3"), needy("worker-4", func(h *host) { h.silent = true }), newHost("worker-5", blockedBy("default/migrate-4")),
			},
			script: []act{
				{20 * minute, "the migration on worker-2 is done", runs("worker-2")},
				{40 * minute, "the migration on worker-1 is done", runs("worker-1")},
			},
		},
		"blocking-pod-after-the-grant": {
			about: "A migration starts between the grant and the first check of a slow agent. The agent does not begin, the slot goes to the next node, " +
				"and nobody has failed.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", waitsForPods, maxFailures(1))},
			hosts:    []*host{needy("worker-1", needsSince(5*time.Hour), slow(2*minute)), needy("worker-2")},
			script: []act{
				{minute, "a migration starts on worker-1", runs("worker-1", blockedBy("default/migrate-1"))},
				{30 * minute, "it is done", runs("worker-1")},
			},
		},
		"undrainable-pod": {
			about: "worker-1 has a pod that no eviction can remove, and worker-2 one without a controller: they get no slot " +
				"until the budget and the policy are fixed. After that the manager's request is a new one.",
			policies: []*v1alpha1.RebootPolicy{policy("workers")},
			hosts: []*host{
				needy("worker-1", needsSince(5*time.Hour), guards("default/db-0"), slow(time.Second)),
				needy("worker-2", needsSince(4*time.Hour), keeps("default/bare")), needy("worker-3"),
			},
			script: []act{
				{20 * minute, "an administrator fixes the budget", runs("worker-1")},
				{30 * minute, "an administrator lets unmanaged pods go", func(c *cluster) {
					runs("worker-2")(c)
					c.edit("workers", func(p *v1alpha1.RebootPolicy) {
						p.Spec.Drain = &v1alpha1.Drain{UnmanagedPods: v1alpha1.PodDisposalDelete}
					})
				}},
			},
		},
		"closed-budget-opens": {
			about: "worker-1 has a pod whose budget is closed until its node is cordoned. It has waited longest but goes last, although its zone comes first. " +
				"Its first slot is freed once its agent has checked the pods.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", domains("zone"))},
			hosts: []*host{
				needy("worker-1", needsSince(9*time.Hour), label("zone", "a"), closes("default/db-0", true), slow(time.Second)),
				needy("worker-2", label("zone", "b")), needy("worker-3", label("zone", "b")),
			},
			lasts: time.Hour,
		},
		"closed-budget-stays": {
			about: "The budgets of worker-1 and worker-2 stay closed even after a cordon: the nodes are tried in turn, less and less often. " +
				"The policy does not halt after four tries, and worker-3 goes first when it needs a reboot. Then the budget of worker-1 is fixed, and it goes at once. " +
				"In the end the policy no longer tries.",
			policies: []*v1alpha1.RebootPolicy{policy("workers")},
			hosts: []*host{
				needy("worker-1", needsSince(9*time.Hour), closes("default/db-0", false), drains(20*minute), slow(time.Second)),
				needy("worker-2", closes("default/db-1", false), drains(20*minute), slow(time.Second)), newHost("worker-3"),
			},
			script: []act{
				{90 * minute, "worker-3 needs a reboot", func(c *cluster) {
					c.update(c.hosts["worker-3"], func(node *corev1.Node) {
						c.condition(node, v1alpha1.NodeRebootRequired, corev1.ConditionTrue, v1alpha1.ReasonUpdateStaged, "")
					})
				}},
				{140 * minute, "an administrator fixes the budget of worker-1", runs("worker-1")},
				{240 * minute, "an administrator ends the tries", edits("workers", neverTries)},
			},
			lasts: 6 * time.Hour,
		},
		"undrainable-pod-goes-last": {
			about: "drain.onTimeout is Reboot: a node whose drain must time out is rebooted, and goes last, although it has waited longest. " +
				"The first slot is free before anybody has looked.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", rebootsAnyway)},
			hosts: slices.Concat(
				hosts(needy, "worker-1", needsSince(9*time.Hour)), hosts(needy, "worker-2", needsSince(5*time.Hour), guards("default/db-0"), drains(20*minute)),
				hosts(needy, "worker-3 worker-4"),
			),
		},
		"blocking-pods-keep-others-off": {
			about: "Nodes that wait for pods keep new pods off, but only as many nodes as may be down. When worker-1 is no longer one of them, worker-3 takes its place. " +
				"A granted node admits the pods of hooks. Then the policy is paused.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("2"), keepsPodsOff)},
			hosts: append(hosts(needy, "worker-2 worker-3", blockedBy("default/migrate-2")),
				needy("worker-1", needsSince(5*time.Hour), blockedBy("default/migrate-1"))),
			script: []act{
				{20 * minute, "the migration on worker-1 is done", runs("worker-1")},
				{40 * minute, "an administrator pauses the policy", edits("workers", paused(nil, ""))},
			},
			lasts: time.Hour,
		},
		"every-node-is-blocked": {
			about:    "Every node has a pod that cannot leave: the policy reports that and waits.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", waitsForPods)},
			hosts: slices.Concat(
				hosts(needy, "worker-1 worker-2", blockedBy("default/migrate-1")), hosts(needy, "worker-3", keeps("default/bare")),
			),
			lasts: time.Hour,
		},
		"blocking-pods-edited": {
			about:    "Gates are added to a policy whose nodes wait: earlier answers of agents do not count. Then the gates are removed again.",
			policies: []*v1alpha1.RebootPolicy{policy("workers")},
			hosts:    hosts(needy, "worker-1 worker-2 worker-3", blockedBy("default/migrate-1")),
			script: []act{
				{minute, "an administrator adds gates.blockingPods", edits("workers", waitsForPods)},
				{time.Hour, "and removes them", edits("workers", func(p *v1alpha1.RebootPolicy) { p.Spec.Gates = nil })},
			},
		},
	}
}

// conflicts returns stories about hosts that somebody else reboots too.
func conflicts() map[string]sequence {
	const locksmithd = `{"reason":"CoordinatorConflict","message":"locksmithd is active on this host"}`
	const both = `{"reason":"Inhibited","message":"dpkg is at work"},` + locksmithd
	return map[string]sequence{
		"coordinator-conflict": {
			about: "locksmithd is active on three hosts: worker-1 waits until it is stopped. Policy legacy ignores that, " +
				"but sees the inhibitor that legacy-2 also has (behaviour 57).",
			policies: []*v1alpha1.RebootPolicy{
				policy("workers"), policy("legacy", priority(1), selects("pool", "legacy"), atMost("2"), ignoresCoordinators),
			},
			hosts: []*host{
				needy("worker-1", needsSince(2*time.Hour), agentBlocking(locksmithd)), needy("worker-2"),
				needy("legacy-1", label("pool", "legacy"), agentBlocking(locksmithd)),
				needy("legacy-2", label("pool", "legacy"), agentBlocking(both)),
			},
			script: []act{
				{10 * minute, "dpkg on legacy-2 is done", changes("legacy-2", sets(v1alpha1.AnnotationReport, reporting(locksmithd)))},
				{20 * minute, "an administrator masks locksmithd on worker-1", changes("worker-1", func(_ *host, node *corev1.Node) {
					delete(node.Annotations, v1alpha1.AnnotationReport)
				})},
			},
		},
	}
}
