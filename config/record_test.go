package config_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// Permission to patch Nodes, or only their status, must not allow writes of the operator's record.
var _ = Describe("the record on Nodes", Ordered, ContinueOnFailure, func() {
	const (
		detector   = "node-problem-detector"
		autoscaler = "an autoscaler"
		operator   = "reboot-operator-fleet-operator"
		editor     = "reboot-operator-record-editor"
		admin      = "cluster-admin"
	)
	var who map[string]*actor

	BeforeAll(func(ctx SpecContext) {
		for name, may := range map[string][]object{
			"detector":   {mayOn("nodes", "get"), mayOn("nodes/status", "patch")},
			"autoscaler": {mayOn("nodes", "get", "create", "update", "patch")},
		} {
			Expect(post(clusterRoles, object{"metadata": object{"name": name}, "rules": may})(ctx, shipped.admin)).To(Succeed())
		}
		who = map[string]*actor{
			detector: accountWith(ctx, shipped, "detector"), autoscaler: accountWith(ctx, shipped, "autoscaler"),
			operator: accountWith(ctx, shipped, operator), editor: accountWith(ctx, shipped, editor),
			admin: accountWith(ctx, shipped, admin),
		}
		// From here on the API server enforces the roles and the policies.
		expectAllowed(ctx, who[detector], patchNode("n4", conditioned("KernelDeadlock"), "status"))
		for _, name := range []string{autoscaler, operator, editor, admin} {
			expectAllowed(ctx, who[name], patchNode("n4", annotated("example.com/other", "y")))
		}
		for _, key := range []string{v1alpha1.AnnotationGrant, v1alpha1.AnnotationProgress} {
			expectForbidden(ctx, who[detector], patchNode("n4", annotated(key, "{\"seq\":1}"), "status"))
		}
	})

	DescribeTable("allows", func(ctx SpecContext, as string, try attempt) {
		expectAllowed(ctx, who[as], try)
		keep(sectionRecord, as, who[as])
	},
		Entry("one of its conditions", detector, patchNode("n4", conditioned("KernelDeadlock"), "status")),
		Entry("one of its annotations", detector, patchNode("n4", annotated("example.com/other", "y"), "status")),
		// What remains possible: the keys for administrators, conditions, and what kubelets report.
		Entry("asking for a reboot", detector, patchNode("n4", forgedRequest, "status")),
		Entry("a need that is not true", detector, patchNode("n4", forgedNeed, "status")),
		Entry("a return from a reboot that is not true", detector, patchNode("n4", forgedReturn, "status")),
		Entry("making a node", autoscaler, createNode),
		Entry("cordoning a node", autoscaler, patchNode("n2", object{"spec": object{"unschedulable": true}})),
		Entry("asking for a reboot", operator, patchNode("n4", forgedRequest)),
		Entry("pausing a node", operator, patchNode("n4", annotated("reboot-operator.io/paused", "true"))),
		Entry("changing the limit of a policy", operator, mergeIntoPolicy(`{"spec":{"concurrency":{"maxUnavailable":2}}}`)),
		Entry("taking a broken grant away", editor, patchNode("n4", annotated(v1alpha1.AnnotationGrant, nil))),
		Entry("taking a broken progress away", editor, patchNode("n4", annotated(v1alpha1.AnnotationProgress, nil))),
		Entry("taking a broken grant away", admin, patchNode("n4", annotated(v1alpha1.AnnotationGrant, nil))),
		Entry("taking a broken progress away", admin, patchNode("n4", annotated(v1alpha1.AnnotationProgress, nil))),
	)

	DescribeTable("refuses, with a sentence that gives the reason", func(ctx SpecContext, as string, try attempt, verb string) {
		Expect(try(ctx, who[as])).To(And(Satisfy(apierrors.IsForbidden),
			MatchError(ContainSubstring("it takes verb "+verb+" on noderecords.reboot-operator.io"))))
		keep(sectionRecord, as, who[as])
	},
		Entry("a grant that nobody gave", detector, patchNode("n4", forgedGrant, "status"), "grant"),
		Entry("annotation preflight", detector, patchNode("n4", annotated(v1alpha1.AnnotationPreflight, "x"), "status"), "grant"),
		Entry("annotation max-uptime", detector, patchNode("n4", annotated(v1alpha1.AnnotationMaxUptime, "24h"), "status"), "grant"),
		Entry("annotation node-conditions", detector, patchNode("n4", annotated(v1alpha1.AnnotationNodeConditions, "x"), "status"), "grant"),
		Entry("annotation fleetlock", detector, patchNode("n4", annotated(v1alpha1.AnnotationFleetLock, "x"), "status"), "grant"),
		Entry("annotation hooks", detector, patchNode("n4", annotated(v1alpha1.AnnotationHooks, "x"), "status"), "grant"),
		Entry("label before-reboot", detector, patchNode("n4", labelled(v1alpha1.LabelBeforeReboot, "x"), "status"), "grant"),
		Entry("label after-reboot", detector, patchNode("n4", labelled(v1alpha1.LabelAfterReboot, "x"), "status"), "grant"),
		Entry("taking the grant away", detector, patchNode("n4", annotated(v1alpha1.AnnotationGrant, nil), "status"), "grant"),
		Entry("taking label before-reboot away", detector, patchNode("n4", labelled(v1alpha1.LabelBeforeReboot, nil), "status"), "grant"),
		Entry("a progress that is not true", detector, patchNode("n4", forgedProgress, "status"), "report"),
		Entry("annotation report", detector, patchNode("n4", annotated(v1alpha1.AnnotationReport, "x"), "status"), "report"),
		Entry("annotation engines", detector, patchNode("n4", annotated(v1alpha1.AnnotationEngines, "x"), "status"), "report"),
		Entry("label reboot-required", detector, patchNode("n4", labelled(v1alpha1.LabelRebootRequired, "x"), "status"), "report"),
		Entry("label os-id", detector, patchNode("n4", labelled(v1alpha1.LabelOSID, "x"), "status"), "report"),
		Entry("label os-version", detector, patchNode("n4", labelled(v1alpha1.LabelOSVersion, "x"), "status"), "report"),
		Entry("label os-group", detector, patchNode("n4", labelled(v1alpha1.LabelOSGroup, "x"), "status"), "report"),
		Entry("taking the progress away", detector, patchNode("n4", annotated(v1alpha1.AnnotationProgress, nil), "status"), "report"),
		Entry("a grant that nobody gave", autoscaler, patchNode("n4", forgedGrant), "grant"),
		Entry("taking the grant away", autoscaler, patchNode("n4", annotated(v1alpha1.AnnotationGrant, nil)), "grant"),
		Entry("writing the node without its grant", autoscaler, updateWithout(v1alpha1.AnnotationGrant), "grant"),
		Entry("making a node with a grant", autoscaler, createNodeWith(v1alpha1.AnnotationGrant), "grant"),
		Entry("a progress that is not true", autoscaler, patchNode("n4", forgedProgress), "report"),
		Entry("taking the progress away", autoscaler, patchNode("n4", annotated(v1alpha1.AnnotationProgress, nil)), "report"),
		Entry("writing the node without its progress", autoscaler, updateWithout(v1alpha1.AnnotationProgress), "report"),
		Entry("making a node with a progress", autoscaler, createNodeWith(v1alpha1.AnnotationProgress), "report"),
		Entry("a grant that nobody gave", operator, patchNode("n4", forgedGrant), "grant"),
		Entry("a progress that is not true", operator, patchNode("n4", forgedProgress), "report"),
	)

	It("has a policy for every key but those of administrators", func() {
		contract, err := os.ReadFile(filepath.Join(testenv.Root(), "api", "v1alpha1", "node.go"))
		Expect(err).NotTo(HaveOccurred())
		fence, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "admission", "record.yaml"))
		Expect(err).NotTo(HaveOccurred())
		keys := regexp.MustCompile(`(?m)^\t(?:Annotation|Label)\w+\s+= "(reboot-operator\.io/.+)"$`).FindAllStringSubmatch(string(contract), -1)
		Expect(keys).NotTo(BeEmpty())
		for _, key := range keys {
			switch key[1] {
			case v1alpha1.AnnotationPaused, v1alpha1.AnnotationRebootRequested, v1alpha1.AnnotationRetry:
			default:
				Expect(string(fence)).To(ContainSubstring("'" + key[1] + "'"))
			}
		}
	})
})

func mayOn(resource string, verbs ...string) object {
	return object{"apiGroups": []string{""}, "resources": []string{resource}, "verbs": verbs}
}

// accountWith returns a ServiceAccount that has the ClusterRole.
func accountWith(ctx context.Context, c *cluster, role string) *actor {
	GinkgoHelper()
	c.bind(ctx, role, "system:serviceaccount:default:"+role)
	return c.as(c.tokenOfOther(ctx, role), "")
}

// updateWithout updates node n4 without one annotation.
func updateWithout(annotation string) attempt {
	return func(ctx context.Context, c kubernetes.Interface) error {
		node, err := c.CoreV1().Nodes().Get(ctx, "n4", metav1.GetOptions{})
		if err != nil {
			return err
		}
		delete(node.Annotations, annotation)
		_, err = c.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{DryRun: dryRun})
		return err
	}
}

func createNodeWith(annotation string) attempt {
	node := makeNode("n3")
	node.Annotations[annotation] = "{}"
	return post(nodes+dry, node)
}
