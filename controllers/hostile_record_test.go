package controllers_test

import (
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers"
)

// The content of one node's record may only affect that node, but not the policy's status or a
// slot.
var _ = Describe("A record with impossible content", func() {
	It("does not prevent reboots of other nodes", func() {
		const strange = 12
		most := int32(strange + 1)
		f := makeFleet(strange + 5)
		p := f.policy("workers", limit(most), func(s *v1alpha1.RebootPolicySpec) { s.MaxFailures = &most })
		odd, others := f.nodes[:strange], f.nodes[strange:]
		drawn := make([]corev1.Node, len(odd))
		for i, name := range odd {
			drawn[i] = controllers.OddNode.Example(i)
			becomes(f, name, drawn[i], p.Name)
		}
		f.need(others...)
		Eventually(func() (remaining []string) {
			for _, name := range others {
				switch g := f.grant(name); {
				case g != nil && g.State == protocol.GrantFinished:
					continue
				case g != nil && g.State == protocol.GrantActive && g.BootID == f.get(name).Status.NodeInfo.BootID:
					f.reboot(name)
				}
				remaining = append(remaining, name)
			}
			return remaining
		}).Should(BeEmpty(), "all of them are rebooted")
		for i, name := range odd {
			if isPatchable(drawn[i]) {
				Eventually(f.reason).WithArguments(name).ShouldNot(BeEmpty(), "%s is reported", name)
				continue
			}
			Eventually(func() bool { return isNamed(policyStatus(p), name) }).Should(BeTrue(), "%s is reported if it can be", name)
		}
	})
})

// becomes turns the node into an odd one that needs a reboot, with records about this policy and
// this node's boot.
func becomes(f *fleet, name string, odd corev1.Node, policy string) {
	actual := strings.NewReplacer("workers", policy, "boot-", "boot-"+name+"-")
	annotations := map[string]any{}
	for key, value := range odd.Annotations {
		annotations[key] = actual.Replace(value)
	}
	var conditions []any
	for _, c := range odd.Status.Conditions {
		if c.Type == v1alpha1.NodeRebootRequired {
			c.Status = corev1.ConditionTrue
		}
		conditions = append(conditions, map[string]any{
			"type": c.Type, "status": c.Status, "reason": c.Reason, "message": c.Message, "lastTransitionTime": c.LastTransitionTime.Format(time.RFC3339),
		})
	}
	f.patch(name, map[string]any{
		"metadata": map[string]any{"annotations": annotations, "labels": odd.Labels}, "spec": map[string]any{"unschedulable": odd.Spec.Unschedulable},
	})
	f.status(name, map[string]any{"nodeInfo": map[string]any{"bootID": actual.Replace(odd.Status.NodeInfo.BootID)}, "conditions": conditions})
}

// isPatchable reports whether the API server can encode the Node as JSON, as it must for every
// patch. It stores times that RFC 3339 cannot represent.
func isPatchable(n corev1.Node) bool {
	return !slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		year := c.LastTransitionTime.UTC().Year()
		return year < 0 || year > 9999
	})
}

// isNamed reports whether the status says that the node is held up, or that the manager cannot
// write it.
func isNamed(s v1alpha1.RebootPolicyStatus, node string) bool {
	progressing := meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionProgressing)
	return slices.ContainsFunc(s.Blocked, func(b v1alpha1.BlockedNodes) bool { return slices.Contains(b.Nodes, node) }) ||
		progressing.Reason == string(v1alpha1.ReasonNodeWriteRefused) && strings.Contains(progressing.Message, node)
}
