package controllers_test

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/agentset"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var _ = Describe("The agents of a policy", func() {
	It("are counted by their pods, and those that do not work are named until they do", func() {
		f, namespace := reportingFleet(3)
		p := f.policy("workers")
		for i, name := range f.nodes {
			agentPod(namespace, name, i < 2)
		}
		log := &requestLog{}
		DeferCleanup(startManager(log, namespace))
		now.forward(time.Minute) // because a new pod gets some time
		Eventually(agentsOf).WithArguments(p).Should(Equal("2/3 False AgentsMissing " + f.nodes[2]))
		Eventually(notesOf).WithArguments(p.Name).Should(ContainElement(HavePrefix("AgentsMissing: 1 of 3 nodes have no working agent")))
		Eventually(labelsOf).WithArguments("reboot_operator_nodes", p.Name, "state").Should(ContainElement("agent_missing"))

		agentIs(namespace, f.nodes[2], true)
		Eventually(agentsOf).WithArguments(p).Should(Equal("3/3 True AgentsReady "))
		Eventually(notesOf).WithArguments(p.Name).Should(ContainElement(HavePrefix("AgentsReady: ")))

		By("noticing one that is gone, though its report stays")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: f.nodes[0]}}
		Expect(api.Delete(context.Background(), pod)).To(Succeed())
		Eventually(agentsOf).WithArguments(p).Should(Equal("2/3 False AgentsMissing " + f.nodes[0]))
		Expect(len(log.Matching("GET", "/pods"))).To(BeNumerically("<=", 3), "one list and one watch, and no look at a pod")
	})

	It("are unknown to a manager without permission to read their pods, which decides as usual", func() {
		f, namespace := reportingFleet(1)
		log := &requestLog{}
		log.meddleWith(func(r *http.Request) bool { return strings.Contains(r.URL.Path, "/pods") })
		p := f.policy("workers")
		DeferCleanup(startManager(log, namespace))
		Eventually(agentsOf).WithArguments(p).Should(Equal("1/1 Unknown AgentsUnknown "))
		Expect(conditionOf(p, v1alpha1.ConditionAgentsReady).Message).To(
			HaveSuffix("could not list the agents' pods in namespace " + namespace + ", see its log"))
	})
})

// reportingFleet returns a fleet whose nodes need no reboot, and a namespace for the pods of its
// agents.
func reportingFleet(size int) (*fleet, string) {
	f := makeFleet(size)
	for _, name := range f.nodes {
		f.reports(name, testenv.Condition(v1alpha1.NodeRebootRequired, "False", string(v1alpha1.ReasonUpToDate)))
	}
	namespace := "agents-of-" + f.pool
	Expect(api.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})).To(Succeed())
	return f, namespace
}

// agentPod creates the pod of a node's agent with the name of the node.
func agentPod(namespace, node string, ready bool) {
	Expect(api.Create(context.Background(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: node, Labels: agentset.PodLabels},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: new(int64(0)), Containers: []corev1.Container{{Name: "agent", Image: "agent"}},
		},
	})).To(Succeed())
	agentIs(namespace, node, ready)
}

// agentIs sets the readiness of the pod, as the kubelet does.
func agentIs(namespace, node string, ready bool) {
	pod := &corev1.Pod{}
	Expect(api.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: node}, pod)).To(Succeed())
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.Now()}}
	Expect(api.Status().Update(context.Background(), pod)).To(Succeed())
}

// agentsOf returns the agents in a policy's status: their number, condition AgentsReady, and the
// missing ones.
func agentsOf(p *v1alpha1.RebootPolicy) string {
	agents, c := policyStatus(p).Nodes.Agents, conditionOf(p, v1alpha1.ConditionAgentsReady)
	if agents == nil {
		return ""
	}
	return strings.Join([]string{agents.Summary, string(c.Status), c.Reason, strings.Join(agents.Nodes, ",")}, " ")
}
