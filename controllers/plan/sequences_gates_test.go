package plan_test

import (
	"time"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

func gates() map[string]sequence {
	return map[string]sequence{
		"gate-fires-in-mid-rollout": {
			about: "The gate has to be clear first. It fires while worker-1 drains, which finishes; worker-2, whose agent has not begun, " +
				"is taken back, and worker-3 waits. Then the gate cannot be asked, which is no yes, and then it is clear.",
			policies: []*v1alpha1.RebootPolicy{policy("workers", atMost("2"), gated("errors"))},
			hosts:    []*host{needy("worker-1", needsSince(5*time.Hour)), needy("worker-2", slow(4*minute), needsSince(4*time.Hour)), needy("worker-3")},
			script: []act{
				{minute, "the gate is asked, and is clear", gatesAnswer("workers", quiet("errors"))},
				{2 * minute, "the gate fires", gatesAnswer("workers", firing("errors"))},
				{20 * minute, "Prometheus is down", gatesAnswer("workers", unreachable("errors"))},
				{40 * minute, "the gate is clear again", gatesAnswer("workers", quiet("errors"))},
			},
		},
		"object-gate": {
			about: "Ceph has to be healthy before each reboot. It is not at first; once it is, worker-1 goes, and Ceph recovers from that for " +
				"half an hour, in which worker-2 waits. The object cannot be read for a while, which is no yes.",
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
