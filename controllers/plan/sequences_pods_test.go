package plan_test

import (
	"slices"
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// pods are stories about pods that keep their node.
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
			about: "A migration starts between the grant and the first look of a slow agent. It does not begin, the slot goes to the next node, " +
				"and nobody has failed.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", waitsForPods, failuresMax(1))},
			hosts:    []*host{needy("worker-1", needsSince(5*time.Hour), slow(2*minute)), needy("worker-2")},
			script: []act{
				{minute, "a migration starts on worker-1", runs("worker-1", blockedBy("default/migrate-1"))},
				{30 * minute, "it is done", runs("worker-1")},
			},
		},
		"undrainable-pod": {
			about: "worker-1 has a pod that no eviction can remove, worker-2 one that nobody would create again: no slot is spent on them, " +
				"until the budget and the policy are fixed. The question is another one then.",
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
		"undrainable-pod-goes-last": {
			about: "drain.onTimeout is Reboot: a node whose drain must run into its time-out is rebooted, and goes last, though it has waited longest. " +
				"The first slot is free before anybody has looked.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", rebootsAnyway)},
			hosts: slices.Concat(
				hosts(needy, "worker-1", needsSince(9*time.Hour)), hosts(needy, "worker-2", needsSince(5*time.Hour), guards("default/db-0"), drains(20*minute)),
				hosts(needy, "worker-3 worker-4"),
			),
		},
		"blocking-pods-keep-others-off": {
			about: "Nodes that wait for pods attract no new ones, as many as may be down. When worker-1 lets go, worker-3 takes over its part; " +
				"a granted node lets the pods of hooks in. Then the policy is paused.",
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
			about:    "Every node has a pod that keeps it: the policy reports it, and waits.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", waitsForPods)},
			hosts: slices.Concat(
				hosts(needy, "worker-1 worker-2", blockedBy("default/migrate-1")), hosts(needy, "worker-3", keeps("default/bare")),
			),
			lasts: time.Hour,
		},
		"blocking-pods-edited": {
			about:    "Gates are put into a policy whose nodes wait: what agents said before counts for nothing. Then they are taken out again.",
			policies: []*v1alpha1.RebootPolicy{policy("workers")},
			hosts:    hosts(needy, "worker-1 worker-2 worker-3", blockedBy("default/migrate-1")),
			script: []act{
				{minute, "an administrator adds gates.blockingPods", edits("workers", waitsForPods)},
				{time.Hour, "and removes them", edits("workers", func(p *v1alpha1.RebootPolicy) { p.Spec.Gates = nil })},
			},
		},
	}
}
