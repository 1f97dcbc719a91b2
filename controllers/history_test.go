package controllers_test

import (
	"math"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gstruct"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("The history", func() {
	history := func(p *v1alpha1.RebootPolicy) []v1alpha1.PastReboot { return policyStatus(p).History }
	forced := func(pods int32) OmegaMatcher {
		return ContainElement(gstruct.MatchFields(gstruct.IgnoreExtras, gstruct.Fields{"PodsForced": Equal(pods)}))
	}

	It("records how many pods did not leave in order, as the agent reports it", func() {
		f := makeFleet(1)
		p := f.policy("workers")
		f.need(f.nodes[0])
		Eventually(f.granted).Should(HaveLen(1))
		f.start(f.nodes[0])
		f.commit(f.nodes[0], func(p *protocol.Progress) { p.PodsForced = math.MaxInt32 })
		f.boot(f.nodes[0], 2)
		Eventually(history).WithArguments(p).Should(forced(math.MaxInt32))
	})

	It("is written whatever number a node claims", func() {
		f := makeFleet(1)
		p := f.policy("workers")
		f.need(f.nodes[0])
		Eventually(f.granted).Should(HaveLen(1))
		f.start(f.nodes[0])
		for _, number := range []string{"-1", "2147483648", "1e99", `"many"`} {
			value := strings.Replace(f.progress(f.nodes[0], protocol.PhaseAborted), `"seq"`, `"podsForced":`+number+`,"seq"`, 1)
			f.annotate(f.nodes[0], v1alpha1.AnnotationProgress, value)
			Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("True RecordUnreadable"), number)
		}
		By("and the status is, once the agent has repaired it")
		f.annotate(f.nodes[0], v1alpha1.AnnotationProgress, f.progress(f.nodes[0], protocol.PhaseAborted))
		Eventually(history).WithArguments(p).Should(forced(0))
	})
})
