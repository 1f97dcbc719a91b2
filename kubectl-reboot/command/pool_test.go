package command_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/agents"
	"github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var pools atomic.Int32

// pool is a policy with its nodes, whose kubelets and agents the test plays.
type pool struct {
	policy string
	nodes  []string
}

// newPool creates Ready nodes that need no reboot, and a policy that selects them and settles at
// once.
func newPool(size int, options ...func(*v1alpha1.RebootPolicy)) *pool {
	GinkgoHelper()
	p := &pool{policy: fmt.Sprintf("pool%d", pools.Add(1))}
	for i := range size {
		name := fmt.Sprintf("%s-n%d", p.policy, i+1)
		p.nodes = append(p.nodes, name)
		node := fleettest.Node(name, p.policy)
		status := node.Status
		Expect(api.Create(context.Background(), &node)).To(Succeed())
		p.patch(name, map[string]any{"status": map[string]any{"nodeInfo": map[string]any{"bootID": status.NodeInfo.BootID}, "conditions": []any{
			testenv.Condition(corev1.NodeReady, "True", "KubeletReady"), testenv.Condition(v1alpha1.NodeRebootRequired, "False", "UpToDate"),
		}}})
	}
	settle := fleettest.Spec(func(s *v1alpha1.RebootPolicySpec) { s.Reboot = &v1alpha1.Reboot{Settle: &v1alpha1.Duration{}} })
	policy := fleettest.Policy(p.policy, append([]func(*v1alpha1.RebootPolicy){settle}, options...)...)
	policy.Generation, policy.Status = 0, v1alpha1.RebootPolicyStatus{}
	Expect(api.Create(context.Background(), &policy)).To(Succeed())
	DeferCleanup(p.delete)
	return p
}

func (p *pool) delete() {
	for _, name := range p.nodes {
		Expect(client.IgnoreNotFound(api.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}))).To(Succeed())
	}
	policy := p.get()
	Expect(client.IgnoreNotFound(api.Delete(context.Background(), policy))).To(Succeed())
	Eventually(func() bool {
		return apierrors.IsNotFound(api.Get(context.Background(), client.ObjectKeyFromObject(policy), policy))
	}).Should(BeTrue())
}

func (p *pool) get() *v1alpha1.RebootPolicy {
	GinkgoHelper()
	var policy v1alpha1.RebootPolicy
	Expect(api.Get(context.Background(), client.ObjectKey{Name: p.policy}, &policy)).To(Succeed())
	return &policy
}

func node(name string) *corev1.Node {
	GinkgoHelper()
	var node corev1.Node
	Expect(api.Get(context.Background(), client.ObjectKey{Name: name}, &node)).To(Succeed())
	return &node
}

func (p *pool) patch(name string, patch map[string]any) {
	GinkgoHelper()
	Expect(testenv.PatchNode(context.Background(), api, v1alpha1.FieldOwnerAgent, name, patch)).To(Succeed())
}

// plays makes the writes of the node's agent as soon as the protocol allows them. The manager
// writes the grant only after the policy's status.
func (p *pool) plays(name string, moves ...agents.Move) {
	GinkgoHelper()
	Eventually(func() error { return agents.Play(context.Background(), api, node(name), moves...) }).Should(Succeed())
}

// needs makes the agent report that the node needs a reboot.
func (p *pool) needs(name string) {
	GinkgoHelper()
	p.plays(name, agents.Report(agents.Staged(time.Now())))
}

// expectPermitted waits until the manager reports the given condition on the node.
func expectPermitted(name, want string) {
	GinkgoHelper()
	Eventually(func() string {
		for _, c := range node(name).Status.Conditions {
			if c.Type == v1alpha1.NodeRebootPermitted {
				return string(c.Status) + " " + c.Reason
			}
		}
		return ""
	}).Should(Equal(want))
}

// starts makes the agent cordon and begin to drain.
func (p *pool) starts(name string) {
	GinkgoHelper()
	p.plays(name, agents.Start(time.Now()))
}

// commits makes the agent pass the point of no return.
func (p *pool) commits(name string) {
	GinkgoHelper()
	p.plays(name, agents.Commit(time.Now()))
}

// waitsFor makes the agent report what its drain waits for.
func (p *pool) waitsFor(name, report string) {
	GinkgoHelper()
	c := testenv.Condition(corev1.NodeDrainInProgress, "True", v1alpha1.EventDraining)
	c["message"] = report
	p.patch(name, map[string]any{"status": map[string]any{"conditions": []any{c}}})
}

// boots boots the machine, and makes its agent report.
func (p *pool) boots(name string) {
	GinkgoHelper()
	p.plays(name, agents.Boot(name+"-boot-2"), agents.Report(agents.UpToDate(time.Now())))
}
