package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("The versions of a policy's nodes", func() {
	It("are in its status, with the nodes that are behind and report no need", func() {
		f := makeFleet(3)
		runs := func(version string, names ...string) {
			for _, name := range names {
				f.patch(name, map[string]any{"metadata": map[string]any{"labels": map[string]any{
					v1alpha1.LabelOSID: "flatcar", v1alpha1.LabelOSGroup: "stable", v1alpha1.LabelOSVersion: version,
				}}})
			}
		}
		versions := func(p *v1alpha1.RebootPolicy) []v1alpha1.SystemVersions { return policyStatus(p).Versions }
		runs("4459.2.1", f.nodes...)
		p := f.policy("workers")
		all := v1alpha1.SystemVersions{OS: "flatcar", Group: "stable", Nodes: 3, Newest: "4459.2.1", OnNewest: 3}
		Eventually(versions).WithArguments(p).Should(ConsistOf(all))

		By("updating one node")
		runs("4593.1.0", f.nodes[0])
		all.Newest, all.OnNewest = "4593.1.0", 1
		all.Others = []v1alpha1.VersionNodes{{Version: "4459.2.1", Nodes: 2, WithoutNeed: 2}}
		Eventually(versions).WithArguments(p).Should(ConsistOf(all))
	})
})
