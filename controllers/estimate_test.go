package controllers_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("The estimate of a policy", func() {
	It("exists while reboots are pending, to the minute, and causes no extra write", func(ctx SpecContext) {
		f := makeFleet(3)
		p := f.policy("workers")
		estimate := func() *metav1.Time { return policyStatus(p).EstimatedCompletionAt }
		Expect(estimate()).To(BeNil())
		from := time.Now()
		f.need(f.nodes...)
		for _, name := range f.nodes {
			Eventually(f.reason).WithArguments(name).ShouldNot(BeEmpty())
		}
		Eventually(estimate).Should(HaveValue(HaveField("Time", And(
			// Three times five minutes, because no reboot has been measured yet.
			BeTemporally("~", from.Add(15*time.Minute), 2*time.Minute), WithTransform(time.Time.Second, BeZero())))))

		version := func() string {
			var policy v1alpha1.RebootPolicy
			Expect(api.Get(context.Background(), client.ObjectKeyFromObject(p), &policy)).To(Succeed())
			return policy.ResourceVersion
		}
		atRest() // postponed counts have been written
		before, decided := version(), reconciles()
		f.annotate(f.nodes[0], "example.com/wakes", "true")
		Eventually(reconciles).Should(BeNumerically(">", decided))
		Consistently(version).Should(Equal(before), "a pass that changes nothing else")

		for range f.nodes {
			name := f.next()
			f.reboot(name)
			f.finishes(name)
		}
		Eventually(estimate).Should(BeNil(), "nothing is to come")
	}, SpecTimeout(3*time.Minute))
})
