package controllers_test

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("A nodeSelector that nobody can evaluate", func() {
	It("is refused at apply; stored before that, it takes no node of another policy and reports it", func(ctx SpecContext) {
		f := makeFleet(1)
		f.policy("workers")
		broken := &v1alpha1.RebootPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: f.pool + "-broken"},
			Spec: v1alpha1.RebootPolicySpec{
				Priority: 10, NodeSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"a": "b c"}},
			},
		}
		Expect(api.Create(ctx, broken)).To(And(Satisfy(apierrors.IsInvalid), MatchError(ContainSubstring("must be a label value"))))

		ruled := editCRD(ctx, func(crd *unstructured.Unstructured) { uncheck(crd, "nodeSelector") })
		Eventually(api.Create).WithArguments(ctx, broken).Should(Succeed())
		DeferCleanup(func() { Expect(client.IgnoreNotFound(api.Delete(context.Background(), broken))).To(Succeed()) })
		ruled()
		Eventually(func() error {
			again := broken.DeepCopy()
			again.Name, again.ResourceVersion = f.pool+"-again", ""
			return api.Create(ctx, again, client.DryRunAll)
		}).Should(Satisfy(apierrors.IsInvalid), "the rule holds again")

		f.need(f.nodes...)
		Eventually(f.granted).Should(Equal(f.nodes))
		Eventually(conditionOf).WithArguments(broken, v1alpha1.ConditionAccepted).Should(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", string(v1alpha1.ReasonInvalid)),
			HaveField("Message", ContainSubstring("the policy governs no node, because spec.nodeSelector cannot be evaluated"))))
		Expect(policyStatus(broken).Nodes.Selected).To(BeZero())
	})
})

// editCRD changes the definition of RebootPolicies. What it returns restores it, and the end of the spec does.
func editCRD(ctx context.Context, edit func(*unstructured.Unstructured)) (restore func()) {
	GinkgoHelper()
	crd := &unstructured.Unstructured{}
	crd.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	key := client.ObjectKey{Name: "rebootpolicies." + v1alpha1.GroupVersion.Group}
	Expect(api.Get(ctx, key, crd)).To(Succeed())
	spec := crd.DeepCopy().Object["spec"]
	// The API server writes the definition's status meanwhile.
	update := func(ctx context.Context, edit func()) {
		GinkgoHelper()
		Expect(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			if err := api.Get(ctx, key, crd); err != nil {
				return err
			}
			edit()
			return api.Update(ctx, crd)
		})).To(Succeed())
	}
	restore = sync.OnceFunc(func() { update(context.Background(), func() { crd.Object["spec"] = spec }) })
	DeferCleanup(restore)
	update(ctx, func() { edit(crd) })
	return restore
}

// uncheck takes the rules away from a field of the spec.
func uncheck(crd *unstructured.Unstructured, field string) {
	GinkgoHelper()
	versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
	Expect(err).NotTo(HaveOccurred())
	unchecked := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	Expect(unstructured.SetNestedMap(versions[0].(map[string]any), unchecked,
		"schema", "openAPIV3Schema", "properties", "spec", "properties", field)).To(Succeed())
	Expect(unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")).To(Succeed())
}
