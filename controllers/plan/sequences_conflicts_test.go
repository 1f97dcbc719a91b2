package plan_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// conflicts are hosts on which somebody else reboots too.
func conflicts() map[string]sequence {
	const locksmithd = `{"reason":"CoordinatorConflict","message":"locksmithd is active on this host"}`
	const both = `{"reason":"Inhibited","message":"dpkg is at work","also":[` + locksmithd + `]}`
	return map[string]sequence{
		"coordinator-conflict": {
			about: "locksmithd is active on three hosts: worker-1 waits until it is stopped. Policy legacy does not mind, " +
				"but learns of the inhibitor that legacy-2 has besides (behaviour 57).",
			policies: []*v1alpha1.RebootPolicy{
				policy("workers"), policy("legacy", priority(1), selects("pool", "legacy"), atMost("2"), ignoresCoordinators),
			},
			hosts: []*host{
				needy("worker-1", needsSince(2*time.Hour), objecting(locksmithd)), needy("worker-2"),
				needy("legacy-1", label("pool", "legacy"), objecting(locksmithd)),
				needy("legacy-2", label("pool", "legacy"), objecting(both)),
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
