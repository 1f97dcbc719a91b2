package controllers_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/limits/footprint"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// allowedHeap is by how much the heap may differ between two moments, in bytes.
const allowedHeap = 1 << 20

// measures keeps this suite from remembering what its managers log and ask for, until the end of the spec.
func measures() {
	logs.Quiet.Store(true)
	requests.Forget(true)
	DeferCleanup(func() {
		logs.Quiet.Store(false)
		requests.Forget(false)
	})
}

func footprintNow() footprint.Footprint {
	f, err := footprint.Now()
	if err != nil {
		testenv.NotShown(GinkgoT(), err.Error())
	}
	return f
}

// stays expects that nothing has grown but by what is allowed, as soon as what ends has ended.
func stays(before footprint.Footprint) footprint.Footprint {
	GinkgoHelper()
	var after footprint.Footprint
	Eventually(func() string {
		after = footprintNow()
		return after.Growth(before, allowedHeap)
	}).WithPolling(200 * time.Millisecond).Should(BeEmpty())
	return after
}

var _ = Describe("A machine that is rebooted again and again", func() {
	It("leaves nothing behind in the manager", func() {
		f := makeFleet(1)
		p := f.policy("workers")
		measures()
		name, boots := f.nodes[0], 1
		cycles := footprint.Times("REBOOTS", 20)
		reboot := func(times int) footprint.Footprint {
			for range times {
				f.need(name)
				Eventually(f.granted).Should(HaveLen(1))
				f.start(name)
				f.commit(name)
				boots++
				f.boot(name, boots)
				Eventually(func() protocol.GrantState { return f.grant(name).State }).Should(Equal(protocol.GrantFinished))
				Eventually(func() []v1alpha1.LedgerEntry { return policyStatus(p).Grants }).Should(BeEmpty())
			}
			return footprintNow()
		}
		warm := reboot(cycles / 10)
		half := reboot(cycles / 2)
		reboot(cycles / 2)
		after := stays(half)
		AddReportEntry("footprint", fmt.Sprintf("\n%d reboots: %s\n%d reboots: %s\n%d reboots: %s",
			cycles/10, warm, cycles/10+cycles/2, half, cycles/10+cycles, after))
		for at, f := range map[int]footprint.Footprint{cycles / 10: warm, cycles/10 + cycles/2: half, cycles/10 + cycles: after} {
			Expect(footprint.AddRow("cycles", "manager", at, f.Cells())).To(Succeed())
		}
		Expect(policyStatus(p).Seq).To(BeEquivalentTo(cycles/10 + cycles/2*2))
	})
})
