package controllers_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// noGrace lets autoscalers remove a node as soon as it is uncordoned.
func noGrace(s *v1alpha1.RebootPolicySpec) {
	s.Autoscaler = &v1alpha1.Autoscaler{Grace: &v1alpha1.Duration{}}
}

// noTraffic takes nodes out of load balancers.
func noTraffic(s *v1alpha1.RebootPolicySpec) {
	s.Drain = &v1alpha1.Drain{LoadBalancers: v1alpha1.LoadBalancersExclude}
}

var _ = Describe("Node markers", func() {
	const (
		scaleDown, disrupt = v1alpha1.AnnotationScaleDownDisabled, v1alpha1.AnnotationDoNotDisrupt
		exclude            = v1alpha1.LabelExcludeFromLoadBalancers
		remediation        = v1alpha1.LabelExcludeFromRemediation
		planned            = string(corev1.NodeMaintenancePlanned)
	)
	var f *fleet
	// markers returns the annotations for autoscalers, the labels for load balancers and health
	// controllers, and condition MaintenancePlanned.
	markers := func(name string) map[string]string {
		node, found := f.get(name), map[string]string{}
		for key, values := range map[string]map[string]string{scaleDown: node.Annotations, disrupt: node.Annotations, exclude: node.Labels, remediation: node.Labels} {
			if value, ok := values[key]; ok {
				found[key] = value
			}
		}
		if c := f.condition(name, corev1.NodeMaintenancePlanned); c != nil {
			found[planned] = string(c.Status) + " " + c.Reason
		}
		return found
	}
	all := map[string]string{scaleDown: "true", disrupt: "true", exclude: v1alpha1.ExcludedByOperator, remediation: "true", planned: "True RebootGranted"}
	begin := func(prepare func(name string), edit ...func(*v1alpha1.RebootPolicySpec)) (name string, p *v1alpha1.RebootPolicy) {
		f = makeFleet(1)
		name = f.nodes[0]
		prepare(name)
		p = f.policy("workers", edit...)
		f.need(name)
		Eventually(f.granted).Should(HaveLen(1))
		return name, p
	}
	nothing := func(string) {}
	finished := func(name string) {
		GinkgoHelper()
		f.finishes(name)
	}

	It("are on a node from the grant until it is back, without extra writes", func() {
		name, _ := begin(nothing, noGrace, noTraffic)
		Expect(markers(name)).To(Equal(all), "grant and markers are one write")
		f.start(name)
		f.commit(name)
		Expect(markers(name)).To(Equal(all))
		f.boot(name, 2)
		finished(name)
		Expect(markers(name)).NotTo(Or(HaveKey(scaleDown), HaveKey(disrupt), HaveKey(exclude), HaveKey(remediation)), "uncordon, end of the grant and of these are one write")
		Expect(f.get(name).Spec.Unschedulable).To(BeFalse())
		Eventually(markers).WithArguments(name).Should(BeEmpty())
	})

	It("are removed when the grant is cancelled, except for a maintenance that another program announced", func() {
		name, _ := begin(func(name string) {
			f.reports(name, testenv.Condition(corev1.NodeMaintenancePlanned, "True", "Firmware"))
		}, noGrace, noTraffic)
		Expect(markers(name)).To(HaveKeyWithValue(planned, "True Firmware"))
		f.annotate(name, v1alpha1.AnnotationPaused, "true")
		Eventually(f.granted).Should(BeEmpty())
		Eventually(f.reason).WithArguments(name).Should(Equal("False NodePaused"))
		Expect(markers(name)).To(Equal(map[string]string{planned: "True Firmware"}))
	})

	It("are removed when the agent has given up", func() {
		name, p := begin(nothing, noGrace, noTraffic)
		f.start(name)
		f.abort(name)
		Eventually(markers).WithArguments(name).Should(BeEmpty())
		Expect(f.grant(name).Annotations).To(BeEmpty())
		Expect(f.grant(name)).To(And(HaveField("Excluded", false), HaveField("Unremediated", false)))
		Expect(policyStatus(p).Grants).To(BeEmpty())
		Eventually(f.reason).WithArguments(name).Should(Equal("False BackingOff"))
	})

	It("keep health controllers off until the reboot has failed, unless somebody else has set the label", func() {
		name, _ := begin(nothing, noTraffic)
		f.start(name)
		f.commit(name)
		f.reports(name, testenv.Condition(corev1.NodeReady, "Unknown", "NodeStatusUnknown"))
		Expect(markers(name)).To(HaveKeyWithValue(remediation, "true"))
		f.passes(name, time.Hour)
		Eventually(f.condition).WithArguments(name, v1alpha1.NodeRebootFailed).ShouldNot(BeNil())
		Eventually(markers).WithArguments(name).ShouldNot(HaveKey(remediation))
		Expect(markers(name)).To(HaveKeyWithValue(exclude, v1alpha1.ExcludedByOperator))
		Expect(f.grant(name)).To(And(HaveField("Excluded", true), HaveField("Unremediated", false)))
	})

	It("leave the label of somebody else for health controllers alone", func() {
		name, _ := begin(func(name string) {
			f.patch(name, map[string]any{"metadata": map[string]any{"labels": map[string]any{remediation: "true"}}})
		}, noGrace)
		Expect(f.grant(name).Unremediated).To(BeFalse())
		f.reboot(name)
		finished(name)
		Eventually(markers).WithArguments(name).Should(Equal(map[string]string{remediation: "true"}))
	})

	It("keep autoscalers off until the grace after the reboot has passed", func() {
		name, p := begin(nothing)
		f.reboot(name)
		finished(name)
		Expect(f.get(name).Spec.Unschedulable).To(BeFalse())
		Eventually(markers).WithArguments(name).Should(Equal(map[string]string{scaleDown: "true", disrupt: "true"}))
		Expect(f.grant(name).Annotations).To(ConsistOf(scaleDown, disrupt))
		f.heartbeat(name, time.Now()) // does not cause a pass, but the next pass needs the new resourceVersion
		now.forward(16 * time.Minute)
		editPolicy(p, func(p *v1alpha1.RebootPolicy) { p.Spec.Reboot.Settle.Duration = time.Second }) // wakes the manager
		Eventually(markers).WithArguments(name).Should(BeEmpty())
		Expect(f.grant(name).Annotations).To(BeEmpty())
	})

	It("announce a maintenance before hooks run, and end it when one refuses", func() {
		f = makeFleet(1)
		name := f.nodes[0]
		f.policy("workers", func(s *v1alpha1.RebootPolicySpec) {
			s.Hooks = &v1alpha1.Hooks{Before: []v1alpha1.AnnotationKey{"example.com/ok"}}
		})
		f.need(name)
		Eventually(func() map[string]string { return f.get(name).Labels }).Should(HaveKey(v1alpha1.LabelBeforeReboot))
		Expect(markers(name)).To(HaveKeyWithValue(planned, "True RebootGranted"), "label and condition are one write")
		f.annotate(name, "example.com/ok", "false")
		Eventually(markers).WithArguments(name).Should(BeEmpty())
	})
})

var _ = Describe("An autoscaler", func() {
	It("that is deleting a node keeps it, and the node uses up the limit", func() {
		f := makeFleet(1)
		name := f.nodes[0]
		p := f.policy("workers")
		f.need(name)
		Eventually(f.granted).Should(HaveLen(1))
		f.taint(name, "ToBeDeletedByClusterAutoscaler")
		Eventually(f.granted).Should(BeEmpty())
		Eventually(f.reason).WithArguments(name).Should(Equal("False NodeUnavailable"))
		Expect(f.condition(name, v1alpha1.NodeRebootPermitted).Message).To(Equal("cluster-autoscaler is deleting the node"))
		Eventually(func() int32 { return policyStatus(p).Nodes.Unavailable }).Should(BeEquivalentTo(1))
	})
})
