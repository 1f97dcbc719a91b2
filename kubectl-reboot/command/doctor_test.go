package command_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/doctor"
)

// deployed creates an object until the test ends.
func deployed(object client.Object) {
	GinkgoHelper()
	Expect(api.Create(context.Background(), object)).To(Succeed())
	DeferCleanup(func() { Expect(client.IgnoreNotFound(api.Delete(context.Background(), object))).To(Succeed()) })
}

func pods(labels map[string]string, image string) (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	return &metav1.LabelSelector{MatchLabels: labels}, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{ServiceAccountName: "nobody", Containers: []corev1.Container{{Name: "main", Image: image}}},
	}
}

// found runs the doctor and returns its findings by check.
func found(user func(*call), args ...string) map[doctor.Check][]doctor.Finding {
	GinkgoHelper()
	stdout, stderr, err := run(append([]string{"doctor", "-o", "json"}, args...), user)
	Expect(err).To(HaveOccurred())
	Expect(stderr).To(MatchRegexp(`^error: (1 problem|\d+ problems)\n$`))
	var report doctor.Diagnosis
	Expect(json.Unmarshal([]byte(stdout), &report)).To(Succeed())
	by := map[doctor.Check][]doctor.Finding{}
	for _, f := range report.Findings {
		by[f.Check] = append(by[f.Check], f)
	}
	return by
}

var _ = Describe("doctor", Serial, func() {
	It("finds what is wrong on a real API server, with the rights of its role", func() {
		applyUserRoles()
		p := newPool(1)
		of := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "kured"}
		kured := &appsv1.DaemonSet{ObjectMeta: of}
		kured.Spec.Selector, kured.Spec.Template = pods(map[string]string{"app": "kured"}, "ghcr.io/kubereboot/kured:1.17.0")
		deployed(kured)
		manager := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "manager"}}
		manager.Spec.Selector, manager.Spec.Template = pods(map[string]string{
			"app.kubernetes.io/name": "reboot-operator", "app.kubernetes.io/component": "manager",
		}, "example.com/manager:v1")
		deployed(manager)
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: of, Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: new(intstr.FromInt32(1))}}
		deployed(budget)
		budget.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: budget.Generation, ExpectedPods: 1, DesiredHealthy: 1}
		Expect(api.Status().Update(context.Background(), budget)).To(Succeed())

		deployed(&eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: p.policy}, EventTime: metav1.NowMicro(), Type: corev1.EventTypeWarning,
			Reason: v1alpha1.EventNotificationFailed, Action: "Notify", Note: "Secret slack not found", Regarding: corev1.ObjectReference{Kind: "RebootPolicy", Name: p.policy},
			ReportingController: "manager", ReportingInstance: "manager-1",
		})

		by := found(as("doctor", "reboot-operator-doctor"))
		for check, all := range by {
			Expect(all).NotTo(ContainElement(HaveField("Level", doctor.Unchecked)), string(check))
		}
		Expect(by[doctor.Policies]).To(ContainElement(HaveField("Message", "a service of spec.notify of policy "+p.policy+" was not notified: Secret slack not found")))
		Expect(by[doctor.Operators]).To(HaveExactElements(HaveField("Command", "kubectl delete daemonset -n default kured")))
		Expect(by[doctor.Manager]).To(ContainElement(HaveField("Message", ContainSubstring("no replica of the manager is Ready (Deployment default/manager)"))))
		Expect(by[doctor.Agents]).To(HaveExactElements(HaveField("Message", ContainSubstring("the DaemonSet of the agents is missing"))))
		Expect(by[doctor.Rights]).To(HaveExactElements(HaveField("Message", And(
			HavePrefix("ServiceAccount default/nobody may not: "), ContainSubstring("update rebootpolicies/status"), ContainSubstring("grant noderecords")))))
		Expect(by[doctor.Budgets]).To(ContainElement(HaveField("Message", HavePrefix("PodDisruptionBudget default/kured requires all of its 1 pod"))))
		Expect(by).NotTo(Or(HaveKey(doctor.Version), HaveKey(doctor.Clocks), HaveKey(doctor.Windows), HaveKey(doctor.Gates)))

		Expect(found(func(*call) {}, "node/"+p.nodes[0])).To(HaveKey(doctor.Operators), "it concerns every node")
		Expect(fails("doctor", "nowhere")).To(Equal("error: node \"nowhere\" not found\n"))
		stdout, _, err := run([]string{"doctor"})
		Expect(err).To(HaveOccurred())
		Expect(stdout).To(And(MatchRegexp(`(?m)^✗ Operators +kured runs as daemonset default/kured`), HavePrefix("✓ Version\n")))
	})

	It("finds a definition that is older, whose API server drops fields, and so does check", func() {
		newPool(1)
		text, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "crd", "bases", "reboot-operator.io_rebootpolicies.yaml"))
		Expect(err).NotTo(HaveOccurred())
		define := func(text string) {
			definition := &unstructured.Unstructured{}
			Expect(yaml.Unmarshal([]byte(text), &definition.Object)).To(Succeed())
			Expect(api.Patch(context.Background(), definition, client.Merge)).To(Succeed())
		}
		DeferCleanup(func() {
			define(string(text))
			Eventually(func() map[doctor.Check][]doctor.Finding { return found(func(*call) {}) }).ShouldNot(HaveKey(doctor.Version))
		})
		define(strings.Replace(string(text), "\n              maxUptime:\n", "\n              formerName:\n", 1))

		Eventually(func() []doctor.Finding { return found(func(*call) {})[doctor.Version] }).Should(HaveExactElements(
			HaveField("Message", ContainSubstring("the API server drops spec.maxUptime from policies"))))
		Eventually(func() string {
			stdout, _, err := run([]string{"check", "-f", policyFile(`{nodeSelector: {matchLabels: {checked: "yes"}}, maxUptime: 30d}`)})
			if err == nil {
				return ""
			}
			return stdout
		}).Should(ContainSubstring(`unknown field "spec.maxUptime"`))
	})

	It("does not report a wrong clock because the API server is slow", func() {
		p := newPool(1)
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: p.nodes[0]},
			Spec:       coordinationv1.LeaseSpec{RenewTime: new(metav1.NowMicro())},
		}
		deployed(lease)
		by := found(wrapped(func(r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/daemonsets") { // takes a minute, in which the kubelet goes on renewing its Lease
				lease.Spec.RenewTime = new(metav1.NewMicroTime(time.Now().Add(time.Minute)))
				Expect(api.Update(context.Background(), lease)).To(Succeed())
			}
		}))
		Expect(by[doctor.Clocks]).To(BeEmpty())
	})

	It("checks the version even if a proxy removes the date, and says that the clocks are unknown", func() {
		newPool(1)
		by := found(func(c *call) {
			c.wire.Meddle(nil, func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				response, err := next.RoundTrip(r)
				if err == nil {
					response.Header.Del("Date")
				}
				return response, err
			})
		})
		Expect(by).NotTo(HaveKey(doctor.Version))
		Expect(by[doctor.Clocks]).To(HaveExactElements(HaveField("Message", "the API server's answer has no date to compare with")))
	})

	It("reports what it may not read, and does not call that healthy", func() {
		applyUserRoles()
		newPool(1)
		by := found(as("doctor-viewer", "reboot-operator-fleet-viewer"))
		for _, check := range []doctor.Check{doctor.Version, doctor.Manager, doctor.Agents, doctor.Rights, doctor.Operators, doctor.Policies, doctor.Budgets, doctor.Clocks} {
			Expect(by[check]).To(ContainElement(And(HaveField("Level", doctor.Unchecked), HaveField("Message", ContainSubstring("forbidden")))), string(check))
		}
	})
})
