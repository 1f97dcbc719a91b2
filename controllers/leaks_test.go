package controllers_test

import (
	"os"
	"runtime"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// footprint is what a leak makes larger.
type footprint struct {
	Goroutines, Files int
	Heap              uint64
}

func footprintNow() footprint {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		Skip("there is no /proc: " + err.Error())
	}
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return footprint{Goroutines: runtime.NumGoroutine(), Files: len(files), Heap: memory.HeapAlloc}
}

// reboots is how many the machine makes: REBOOTS, or few.
func reboots() int {
	if n, err := strconv.Atoi(os.Getenv("REBOOTS")); err == nil {
		return n
	}
	return 50
}

var _ = Describe("A machine that is rebooted again and again", func() {
	It("leaves nothing behind in the manager", func() {
		f := makeFleet(1)
		p := f.policy("workers")
		name, boots := f.nodes[0], 1
		reboot := func(times int) {
			for range times {
				f.need(name)
				Eventually(f.granted).Should(HaveLen(1))
				f.start(name)
				f.commit(name)
				boots++
				f.boot(name, boots)
				Eventually(func() v1alpha1.GrantState { return f.grant(name).State }).Should(Equal(v1alpha1.GrantFinished))
				Eventually(func() []v1alpha1.LedgerEntry { return policyStatus(p).Grants }).Should(BeEmpty())
			}
		}
		reboot(reboots() / 10)
		before := footprintNow()
		reboot(reboots())
		// The heap has what client-go remembers of events for six minutes, and the log of this very test.
		Eventually(footprintNow).Should(And(
			HaveField("Goroutines", BeNumerically("<=", before.Goroutines+2)),
			HaveField("Files", BeNumerically("<=", before.Files+2)),
			HaveField("Heap", BeNumerically("<", before.Heap+16<<20)),
		), "before: %+v", before)
		AddReportEntry("footprint", struct{ Before, After footprint }{before, footprintNow()})
		Expect(policyStatus(p).Seq).To(BeEquivalentTo(reboots()/10 + reboots()))
	})
})
