package controllers_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/hack/limits/footprint"
)

// measures stops this suite from recording the logs and requests of its managers until the end of
// the spec.
func measures() {
	logs.Quiet.Store(true)
	requests.Forget(true)
	DeferCleanup(func() {
		logs.Quiet.Store(false)
		requests.Forget(false)
	})
}

var _ = Describe("A machine that is rebooted again and again", func() {
	It("leaves nothing behind in the manager", func() {
		f := makeFleet(1)
		p := f.policy("workers")
		measures()
		name, boots := f.nodes[0], 1
		footprint.Cycles(GinkgoT(), "manager", 20, func() {
			f.need(name)
			Eventually(f.granted).Should(HaveLen(1))
			f.start(name)
			f.commit(name)
			boots++
			f.boot(name, boots)
			f.finishes(name)
			Eventually(grantsOf).WithArguments(p).Should(BeEmpty())
		})
		Expect(policyStatus(p).Seq).To(BeEquivalentTo(boots - 1))
	})
})
