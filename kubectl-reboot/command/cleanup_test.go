package command_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var _ = Describe("cleanup", Serial, func() {
	const name = "left-behind"
	BeforeEach(func() {
		stopManager() // as after an uninstallation
		DeferCleanup(func() { stopManager = startManager() })
		n := fleettest.Node(name, "nobodys", fleettest.Annotated(v1alpha1.AnnotationReport, "{}"), fleettest.Annotated("example.com/mine", "stays"),
			fleettest.Annotated(v1alpha1.AnnotationScaleDownDisabled, "true"), fleettest.Annotated(v1alpha1.AnnotationDoNotDisrupt, "true"),
			fleettest.Annotated(v1alpha1.AnnotationGrant, `{"policy":"gone","seq":7,"bootID":"b","state":"Finished","at":"2026-06-01T00:00:00Z","annotations":["`+v1alpha1.AnnotationScaleDownDisabled+`"],"excluded":true,"unremediated":true}`))
		n.Labels[v1alpha1.LabelOSID], n.Labels[v1alpha1.LabelExcludeFromLoadBalancers] = "flatcar", v1alpha1.ExcludedByOperator
		n.Labels[v1alpha1.LabelExcludeFromRemediation] = "true"
		n.Spec.Unschedulable = true
		n.Spec.Taints = []corev1.Taint{{Key: v1alpha1.TaintPending, Effect: corev1.TaintEffectPreferNoSchedule}, {Key: "example.com/mine", Effect: corev1.TaintEffectNoSchedule}}
		Expect(api.Create(context.Background(), &n)).To(Succeed())
		DeferCleanup(func() { Expect(api.Delete(context.Background(), node(name))).To(Succeed()) })
		(&pool{}).patch(name, map[string]any{"status": map[string]any{"conditions": []any{
			testenv.Condition(corev1.NodeReady, "True", "KubeletReady"), testenv.Condition(v1alpha1.NodeRebootRequired, "False", "UpToDate"),
			testenv.Condition(corev1.NodeDrained, "False", "RebootSucceeded"), testenv.Condition(corev1.NodeMaintenancePlanned, "True", "RebootGranted"),
		}}})
		others := node(name)
		others.Status.Conditions = append(others.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeMaintenanceInProgress, Status: corev1.ConditionFalse, Reason: "Theirs"})
		Expect(api.Status().Update(context.Background(), others, client.FieldOwner("maintainer"))).To(Succeed())
	})
	kinds := func() (kinds []corev1.NodeConditionType) {
		for _, c := range node(name).Status.Conditions {
			kinds = append(kinds, c.Type)
		}
		return kinds
	}

	It("removes everything that the operator left on Nodes, keeps the rest, and names a cordon", func() {
		removed := "node/left-behind cleaned of annotations cluster-autoscaler.kubernetes.io/scale-down-disabled, grant, report; labels node.kubernetes.io/exclude-from-external-load-balancers, os-id, remediation.medik8s.io/exclude-from-remediation; taint reboot-operator.io/reboot-pending; conditions Drained, MaintenancePlanned, RebootRequired; it stays cordoned: kubectl uncordon left-behind --kubeconfig=" + admin
		for _, how := range []string{"client", "server"} {
			Expect(ok("cleanup", "--dry-run="+how)).To(Equal(removed + " (" + how + " dry run)\n"))
			Expect(node(name).Annotations).To(HaveKey(v1alpha1.AnnotationReport))
			Expect(kinds()).To(ContainElement(v1alpha1.NodeRebootRequired))
		}
		Expect(ok("cleanup")).To(Equal(removed + "\n"))
		n := node(name)
		Expect(n.Annotations).To(And(HaveKey("example.com/mine"), HaveKey(v1alpha1.AnnotationDoNotDisrupt),
			Not(HaveKey(v1alpha1.AnnotationReport)), Not(HaveKey(v1alpha1.AnnotationScaleDownDisabled))))
		Expect(n.Labels).To(And(HaveKey(fleettest.PoolLabel), Not(HaveKey(v1alpha1.LabelOSID)), Not(HaveKey(v1alpha1.LabelExcludeFromLoadBalancers)), Not(HaveKey(v1alpha1.LabelExcludeFromRemediation))))
		Expect(n.Spec.Taints).To(ContainElement(HaveField("Key", "example.com/mine")))
		Expect(n.Spec.Taints).NotTo(ContainElement(HaveField("Key", v1alpha1.TaintPending)))
		Expect(n.Spec.Unschedulable).To(BeTrue())
		Expect(kinds()).To(HaveExactElements(corev1.NodeReady, corev1.NodeMaintenanceInProgress), "one of KEP-5683 that another program has written stays")
		stdout, stderr, err := run([]string{"cleanup"})
		Expect(err).NotTo(HaveOccurred())
		Expect([]string{stdout, stderr}).To(Equal([]string{"", "No node has anything that the operator left.\n"}))
	})

	It("removes a cordon that only an agent has set", func() {
		const drained = "left-in-mid-drain"
		n := fleettest.Node(drained, "nobodys", fleettest.Annotated(v1alpha1.AnnotationProgress,
			`{"seq":7,"phase":"Draining","bootID":"b","cordoned":true,"at":"2026-06-01T00:00:00Z"}`))
		n.Spec.Unschedulable = true
		Expect(api.Create(context.Background(), &n, client.FieldOwner(v1alpha1.FieldOwnerAgent))).To(Succeed())
		DeferCleanup(func() { Expect(api.Delete(context.Background(), node(drained))).To(Succeed()) })
		Expect(ok("cleanup")).To(ContainSubstring("node/" + drained + " cleaned of cordon; annotations progress; conditions RebootRequired\n"))
		Expect(node(drained).Spec.Unschedulable).To(BeFalse())
	})

	It("names the permissions that it needs, which no role of the operator has", func() {
		applyUserRoles()
		for name, resource := range map[string]string{"viewer": `"nodes"`, "operator": `"nodes/status"`} {
			stdout, stderr, err := run([]string{"cleanup"}, as("cleaning-"+name, "reboot-operator-fleet-"+name))
			Expect(err).To(HaveOccurred())
			Expect(stdout).To(BeEmpty(), "the conditions are still there")
			Expect(stderr).To(And(ContainSubstring(resource), HaveSuffix("; cleanup needs the right to patch nodes and nodes/status, as cluster-admin has it\n")))
		}
		Expect(kinds()).To(ContainElement(v1alpha1.NodeRebootRequired))
	})

	It("writes nothing while a policy exists", func() {
		p := newPool(1, paused)
		Expect(fails("cleanup")).To(And(ContainSubstring("nothing is removed while policies exist"), ContainSubstring(p.policy), ContainSubstring("make undeploy removes them")))
		for key, want := range map[string]string{
			"meta.helm.sh/release-name":        "helm uninstall x --namespace",
			"argocd.argoproj.io/tracking-id":   "remove them from Application x",
			"helm.toolkit.fluxcd.io/name":      "kubectl delete helmrelease -n  x",
			"kustomize.toolkit.fluxcd.io/name": "remove them from its source, Kustomization x",
		} {
			object := p.get()
			object.Annotations, object.Labels = map[string]string{key: "x"}, map[string]string{key: "x"}
			Expect(api.Update(context.Background(), object)).To(Succeed())
			Expect(fails("cleanup")).To(ContainSubstring(want))
		}
		Expect(node(name).Annotations).To(HaveKey(v1alpha1.AnnotationReport))
	})
})
