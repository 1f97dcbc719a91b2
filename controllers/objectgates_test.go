package controllers_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

// diskKind is a kind that only the gates of this file use.
const diskKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: disks.storage.example.com}
spec:
  group: storage.example.com
  scope: Namespaced
  names: {kind: Disk, plural: disks, singular: disk}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

func unstructuredOf(manifest string) *unstructured.Unstructured {
	GinkgoHelper()
	object := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal([]byte(manifest), &object.Object)).To(Succeed())
	return object
}

// makeDisk creates a disk with a health until the end of the spec, once the API server serves the
// kind.
func makeDisk(name, health string) *unstructured.Unstructured {
	GinkgoHelper()
	disk := unstructuredOf(`{apiVersion: storage.example.com/v1, kind: Disk, metadata: {namespace: default, labels: {disk: "true"}}}`)
	disk.SetName(name)
	disk.Object["health"] = health
	Eventually(func() error { return api.Create(context.Background(), disk.DeepCopy()) }).Should(Succeed())
	DeferCleanup(func() { Expect(client.IgnoreNotFound(api.Delete(context.Background(), disk))).To(Succeed()) })
	return disk
}

func setHealth(disk *unstructured.Unstructured, health string) {
	GinkgoHelper()
	before := disk.DeepCopy()
	disk.Object["health"] = health
	Expect(api.Patch(context.Background(), disk, client.MergeFrom(before))).To(Succeed())
}

// diskGate returns a gate that is clear if a disk is healthy, with edits.
func diskGate(name string, edit ...func(*v1alpha1.ObjectGate)) func(*v1alpha1.RebootPolicySpec) {
	g := v1alpha1.ObjectGate{APIVersion: "storage.example.com/v1", Kind: "Disk", Namespace: "default", Name: name, Expression: "object.health == 'good'"}
	for _, e := range edit {
		e(&g)
	}
	return func(s *v1alpha1.RebootPolicySpec) { s.Gates = &v1alpha1.Gates{Objects: []v1alpha1.ObjectGate{g}} }
}

var _ = Describe("A gate of objects", Ordered, ContinueOnFailure, func() {
	BeforeAll(func() {
		create(unstructuredOf(diskKind))
	})

	It("blocks reboots while its expression is false", func() {
		disk := makeDisk("sick", "bad")
		f := makeFleet(2)
		p := f.policy("workers", diskGate("sick"))
		f.need(f.nodes...)
		for _, name := range f.nodes {
			Eventually(f.reason).WithArguments(name).Should(Equal("False ObjectNotReady"))
			Expect(f.condition(name, v1alpha1.NodeRebootPermitted).Message).To(
				Equal("gate Disk/sick of policy " + p.Name + ": Disk default/sick: the expression is false"))
		}
		Eventually(gateState).WithArguments(p).Should(Equal("NotReady Disk default/sick: the expression is false"))
		Eventually(reasonsOf).WithArguments(p.Name).Should(ContainElement("ObjectNotReady"))
		Expect(policyStatus(p).Grants).To(BeEmpty())
		setHealth(disk, "good")
		Eventually(f.granted).Should(HaveLen(1))

		By("missing, once the first one is back")
		first := f.granted()[0]
		f.start(first)
		Expect(api.Delete(context.Background(), disk)).To(Succeed())
		Eventually(gateState).WithArguments(p).Should(Equal("Unreachable Disk default/sick does not exist"))
		f.comeBack(first)
		Eventually(f.granted).Should(BeEmpty())
		for _, name := range f.nodes {
			if name != first {
				Eventually(f.reason).WithArguments(name).Should(Equal("False GateUnreachable"))
			}
		}
	})

	It("reports an expression that does not compile on the policy, and blocks reboots", func() {
		makeDisk("well", "good")
		f := makeFleet(1)
		p := f.policy("workers", diskGate("well", func(g *v1alpha1.ObjectGate) { g.Expression = "object.health = 'good'" }))
		Eventually(acceptedReason).WithArguments(p).Should(Equal("Invalid"))
		Expect(policyStatus(p).Conditions).To(ContainElement(HaveField("Message",
			HavePrefix("spec.gates.objects[0].expression does not compile: line 1, column 15: Syntax error"))))
		f.need(f.nodes...)
		Eventually(f.reason).WithArguments(f.nodes[0]).Should(Equal("False Invalid"))
		Expect(f.granted()).To(BeEmpty())
		editPolicy(p, func(p *v1alpha1.RebootPolicy) { p.Spec.Gates.Objects[0].Expression = "object.health == 'good'" })
		Eventually(f.granted).Should(HaveLen(1))
		Expect(acceptedReason(p)).To(Equal("Accepted"))
	})
})
