package controllers_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("With --manage-agents", func() {
	It("creates the DaemonSet with the first policy, follows all selectors, and deletes it with the last policy", func() {
		a := bringAgents("registry/agent:1")
		first := createPolicy("first", selecting("a"))
		Eventually(a.nodes).Should(Equal([]string{"example.com/pool In [a];"}))
		set := a.get()
		Expect(a.image()).To(Equal("registry/agent:1"))
		Expect(set.Spec.Template.Spec.NodeSelector).To(Equal(map[string]string{"kubernetes.io/os": "linux"}))
		Expect(set.Labels).To(HaveKeyWithValue("app.kubernetes.io/managed-by", "reboot-operator-manager"))

		second := createPolicy("second", selectingOperator(metav1.LabelSelectorOpNotIn, "x", "b"))
		third := createPolicy("third", selectingOperator(metav1.LabelSelectorOpDoesNotExist))
		fourth := createPolicy("fourth", selectingOperator(metav1.LabelSelectorOpExists))
		Eventually(a.nodes).Should(Equal([]string{
			"example.com/pool DoesNotExist [];", "example.com/pool Exists [];",
			"example.com/pool In [a];", "example.com/pool NotIn [b x];",
		}))
		editPolicy(fourth, func(p *v1alpha1.RebootPolicy) { p.Spec.NodeSelector = nil })
		Eventually(a.nodes).Should(Equal([]string{"everywhere"}))
		for _, p := range []*v1alpha1.RebootPolicy{second, third, fourth} {
			deletePolicy(p)
		}
		Eventually(a.nodes).Should(Equal([]string{"example.com/pool In [a];"}))
		Expect(a.get().UID).To(Equal(set.UID), "it was never created again")
		deletePolicy(first)
		Eventually(a.get).Should(BeNil())
	})

	It("keeps the agent of a node that leaves all selectors during its drain, until its attempt is over (behaviour 64)", func() {
		f := makeFleet(2)
		p := f.policy("workers")
		a := bringAgents("registry/agent:1")
		inPool := "example.com/pool In [" + f.pool + "];"
		Eventually(a.nodes).Should(Equal([]string{inPool}))
		f.need(f.nodes[0])
		Eventually(f.granted).Should(HaveLen(1))
		f.start(f.nodes[0])
		f.patch(f.nodes[0], map[string]any{"metadata": map[string]any{"labels": map[string]any{poolLabel: "elsewhere"}}})
		Eventually(a.nodes).Should(Equal([]string{inPool, "metadata.name In [" + f.nodes[0] + "];"}))
		f.comeBack(f.nodes[0])
		Eventually(a.nodes).Should(Equal([]string{inPool}))
		Expect(f.grant(f.nodes[0]).State).To(Equal(protocol.GrantFinished))
		Expect(policyStatus(p).Conditions).NotTo(BeEmpty())
	})

	It("rolls out a new image with one write to the same DaemonSet", func() {
		a := bringAgents("registry/agent:1")
		createPolicy("all", nil)
		Eventually(a.image).Should(Equal("registry/agent:1"))
		before := a.get()
		a.restart("registry/agent:2")
		Eventually(a.image).Should(Equal("registry/agent:2"))
		after := a.get()
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.Generation).To(Equal(before.Generation + 1))
		Expect(after.Spec.UpdateStrategy.Type).To(Equal(appsv1.RollingUpdateDaemonSetStrategyType))
		Expect(a.writes()).To(HaveLen(1))
	})

	It("reverts changes by others, and leaves fields alone that it does not own", func() {
		a := bringAgents("registry/agent:1")
		createPolicy("some", selecting("a"))
		Eventually(a.get).ShouldNot(BeNil())
		By("an image, a place and arguments")
		a.edit(func(set *appsv1.DaemonSet) {
			pod := &set.Spec.Template.Spec
			pod.Containers[0].Image = "registry/other:latest"
			pod.Containers[0].Args = append(pod.Containers[0].Args, "--reboot-at-once")
			pod.Affinity = nil
		})
		Eventually(a.image).Should(Equal("registry/agent:1"))
		Expect(a.nodes()).To(Equal([]string{"example.com/pool In [a];"}))
		Expect(a.get().Spec.Template.Spec.Containers[0].Args).NotTo(ContainElement("--reboot-at-once"))
		By("a label that the operator sets")
		a.edit(func(set *appsv1.DaemonSet) { delete(set.Labels, "app.kubernetes.io/part-of") })
		Eventually(func() string { return a.get().Labels["app.kubernetes.io/part-of"] }).Should(Equal("reboot-operator"))
		By("but not what `kubectl rollout restart` writes")
		a.edit(func(set *appsv1.DaemonSet) {
			set.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"] = "2026-01-01T00:00:00Z"
			set.Spec.Template.Spec.Containers[0].Image = "registry/other:latest" // when this is reset, the controller has seen the DaemonSet
		})
		Eventually(a.image).Should(Equal("registry/agent:1"))
		Expect(a.get().Spec.Template.Annotations).To(HaveKey("kubectl.kubernetes.io/restartedAt"))
		By("creating it again after a deletion")
		gone := a.get()
		Expect(api.Delete(context.Background(), gone)).To(Succeed())
		Eventually(func() bool { set := a.get(); return set != nil && set.UID != gone.UID }).Should(BeTrue())
	})

	It("writes nothing while nothing changes, even if pods, nodes and status do", func() {
		f := makeFleet(1)
		a := bringAgents("registry/agent:1")
		p := f.policy("workers")
		Eventually(a.get).ShouldNot(BeNil())
		for i := range 3 {
			set := a.get()
			set.Status.NumberReady = int32(i)
			set.Status.ObservedGeneration = set.Generation
			Expect(api.Status().Update(context.Background(), set)).To(Succeed())
		}
		f.need(f.nodes[0])
		Eventually(f.granted).Should(HaveLen(1))
		f.reboot(f.nodes[0])
		f.finishes(f.nodes[0])
		f.annotate(f.nodes[0], "example.com/note", "x")
		editPolicy(p, func(p *v1alpha1.RebootPolicy) { p.Spec.Priority = 7 })
		By("until something does: then once")
		editPolicy(p, func(p *v1alpha1.RebootPolicy) { p.Spec.NodeSelector.MatchLabels["example.com/more"] = "y" })
		Eventually(a.nodes).Should(ConsistOf(ContainSubstring("example.com/more")))
		Expect(a.writes()).To(HaveLen(2))
		Expect(a.log.Matching("GET", "/daemonsets")).To(HaveEach(ContainSubstring("fieldSelector=metadata.name%3Dreboot-operator-agent")),
			"it only ever looks at its own")
	})

	It("writes once when it starts, and that changes nothing", func() {
		a := bringAgents("registry/agent:1")
		createPolicy("all", nil)
		Eventually(a.get).ShouldNot(BeNil())
		before := a.get()
		a.restart("registry/agent:1")
		Eventually(a.writes).Should(HaveLen(1))
		createPolicy("another", nil) // triggers the controller
		Consistently(a.writes, "200ms").Should(HaveLen(1))
		Expect(a.get().ResourceVersion).To(Equal(before.ResourceVersion))
	})

	It("leaves a DaemonSet alone that it did not create, reports it on the policy, and takes it over when it is labelled", func() {
		a := bringAgents("registry/agent:1")
		a.byHand()
		before := a.get()
		p := createPolicy("mine", selecting("a"))
		Eventually(notesOf).WithArguments(p.Name).Should(ContainElement(And(
			HavePrefix("AgentsNotDeployed: DaemonSet "+a.namespace+"/reboot-operator-agent was not made by the manager"),
			ContainSubstring("kubectl label daemonset -n "+a.namespace))))
		Expect(a.get()).To(Equal(before))
		deletePolicy(p)
		p = createPolicy("again", selecting("a"))
		Eventually(notesOf).WithArguments(p.Name).Should(ContainElement(HavePrefix("AgentsNotDeployed")))
		Expect(a.get()).To(Equal(before), "it was not removed with the last policy either")
		Expect(a.writes()).To(BeEmpty())

		a.edit(func(set *appsv1.DaemonSet) { set.Labels["app.kubernetes.io/managed-by"] = "reboot-operator-manager" })
		Eventually(a.image).Should(Equal("registry/agent:1"))
		Expect(a.nodes()).To(Equal([]string{"example.com/pool In [a];"}))
		Expect(a.get().UID).To(Equal(before.UID))
	})

	It("reports refusals of the API server on the policy, and tries again", func() {
		a := &agentsManager{namespace: "agents-nowhere"}
		a.start("registry/agent:1")
		p := createPolicy("p", nil)
		Eventually(notesOf).WithArguments(p.Name).Should(ContainElement(
			`AgentsNotDeployed: applying DaemonSet "reboot-operator-agent": namespaces "agents-nowhere" not found`))
		Expect(api.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}})).To(Succeed())
		Eventually(a.image).Should(Equal("registry/agent:1"))
	})

	It("sends no requests about DaemonSets without the flag", func() {
		p := createPolicy("static", nil)
		Eventually(func() []metav1.Condition { return policyStatus(p).Conditions }).ShouldNot(BeEmpty())
		Expect(requests.Matching("", "daemonsets")).To(BeEmpty())
	})
})
