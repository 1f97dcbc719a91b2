package config_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Only the policies are tested. Whether they are enforced depends on the network plugin.
var _ = Describe("config/network-policy", Ordered, ContinueOnFailure, func() {
	var templates []corev1.PodTemplateSpec
	policies := map[string]networkingv1.NetworkPolicy{}

	BeforeAll(func(ctx SpecContext) {
		shipped.apply(ctx, "config/network-policy")
		list, err := shipped.admin.NetworkingV1().NetworkPolicies(namespace).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		for _, policy := range list.Items {
			policies[policy.Name] = policy
		}
		deployment, err := shipped.admin.AppsV1().Deployments(namespace).Get(ctx, managerAccount, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		daemonSet, err := shipped.admin.AppsV1().DaemonSets(namespace).Get(ctx, agentAccount, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		templates = []corev1.PodTemplateSpec{daemonSet.Spec.Template, deployment.Spec.Template}
	})

	It("has one policy for each program, which selects only its pods", func() {
		Expect(policies).To(HaveLen(len(templates)))
		for _, template := range templates {
			var selecting []string
			for name, policy := range policies {
				selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
				Expect(err).NotTo(HaveOccurred())
				if selector.Matches(labels.Set(template.Labels)) {
					selecting = append(selecting, name)
				}
			}
			Expect(selecting).To(ConsistOf(template.Spec.ServiceAccountName))
		}
	})

	It("allows only scrapes of metrics, from namespaces with a label", func() {
		for _, template := range templates {
			spec := policies[template.Spec.ServiceAccountName].Spec
			Expect(spec.PolicyTypes).To(ConsistOf(networkingv1.PolicyTypeIngress))
			Expect(spec.Ingress).To(HaveLen(1))
			Expect(spec.Ingress[0].From).To(ConsistOf(HaveField("NamespaceSelector.MatchLabels", HaveKeyWithValue("metrics", "enabled"))))
			Expect(spec.Ingress[0].Ports).To(ConsistOf(HaveField("Port.StrVal", "metrics")))
			Expect(template.Spec.Containers[0].Ports).To(ContainElement(HaveField("Name", "metrics")))
		}
	})
})
