package controllers_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/agents"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

const poolLabel = "example.com/pool"

var pools atomic.Int32

// fleet is a pool of nodes whose kubelets and agents the test plays.
type fleet struct {
	pool  string
	nodes []string
}

func makeFleet(size int) *fleet {
	f := &fleet{pool: fmt.Sprintf("pool%d", pools.Add(1))}
	for i := range size {
		name := fmt.Sprintf("%s-n%d", f.pool, i+1)
		f.nodes = append(f.nodes, name)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{poolLabel: f.pool}}}
		Expect(api.Create(context.Background(), node)).To(Succeed())
		f.status(name, map[string]any{
			"nodeInfo": map[string]any{"bootID": bootID(name, 1)}, "conditions": []any{testenv.Condition(corev1.NodeReady, "True", "KubeletReady")},
		})
	}
	DeferCleanup(f.delete)
	return f
}

func bootID(node string, boot int) string { return fmt.Sprintf("boot-%s-%d", node, boot) }

func (f *fleet) delete() {
	for _, name := range f.nodes {
		err := api.Delete(context.Background(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		Expect(client.IgnoreNotFound(err)).To(Succeed())
	}
}

// policy creates a policy for the pool that settles at once, and waits until the manager has read
// it. Otherwise later changes of nodes would race with the policy, and nodes could be reported as
// selected by no policy for a moment.
func (f *fleet) policy(name string, edit ...func(*v1alpha1.RebootPolicySpec)) *v1alpha1.RebootPolicy {
	one := intstr.FromInt32(1)
	p := &v1alpha1.RebootPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: f.pool + "-" + name},
		Spec: v1alpha1.RebootPolicySpec{
			NodeSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{poolLabel: f.pool}},
			Concurrency:  &v1alpha1.Concurrency{MaxUnavailable: &one},
			Reboot:       &v1alpha1.Reboot{Settle: &v1alpha1.Duration{}},
		},
	}
	for _, e := range edit {
		e(&p.Spec)
	}
	Expect(api.Create(context.Background(), p)).To(Succeed())
	DeferCleanup(func() {
		f.delete()
		Expect(client.IgnoreNotFound(api.Delete(context.Background(), p))).To(Succeed())
		Eventually(isGone).WithArguments(p).Should(BeTrue(), "the policy goes once its nodes are gone")
	})
	Eventually(func() int64 { return policyStatus(p).ObservedGeneration }).Should(Equal(p.Generation), "the manager has read the policy")
	return p
}

func limit(n int32) func(*v1alpha1.RebootPolicySpec) {
	return func(s *v1alpha1.RebootPolicySpec) {
		value := intstr.FromInt32(n)
		s.Concurrency = &v1alpha1.Concurrency{MaxUnavailable: &value}
	}
}

func (f *fleet) get(name string) *corev1.Node {
	var node corev1.Node
	Expect(api.Get(context.Background(), client.ObjectKey{Name: name}, &node)).To(Succeed())
	return &node
}

func (f *fleet) grant(name string) *protocol.Grant {
	g, err := protocol.ParseGrant(f.get(name).Annotations)
	Expect(err).NotTo(HaveOccurred())
	return g
}

// granted returns the nodes with an active grant that the agent has not finished with.
func (f *fleet) granted() []string {
	var names []string
	for _, name := range f.nodes {
		if g := f.grant(name); g != nil && g.State == protocol.GrantActive {
			names = append(names, name)
		}
	}
	return names
}

func (f *fleet) condition(name string, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for _, c := range f.get(name).Status.Conditions {
		if c.Type == kind {
			return &c
		}
	}
	return nil
}

// reason returns the status and the reason of RebootPermitted.
func (f *fleet) reason(name string) string {
	c := f.condition(name, v1alpha1.NodeRebootPermitted)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

func (f *fleet) status(name string, status map[string]any) {
	f.patch(name, map[string]any{"status": status})
}

// reports writes conditions.
func (f *fleet) reports(name string, conditions ...any) {
	f.status(name, map[string]any{"conditions": conditions})
}

func (f *fleet) annotate(name, key string, value any) {
	f.patch(name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
}

func (f *fleet) patch(name string, patch map[string]any) {
	ExpectWithOffset(2, testenv.PatchNode(context.Background(), api, v1alpha1.FieldOwnerAgent, name, patch)).To(Succeed())
}

// plays applies writes of the node's agent.
func (f *fleet) plays(name string, moves ...agents.Move) {
	GinkgoHelper()
	Expect(agents.Play(context.Background(), api, f.get(name), moves...)).To(Succeed())
}

// passes advances the clock of the managers until the end of the spec, and wakes them with a change
// of a node.
func (f *fleet) passes(name string, by time.Duration) {
	now.forward(by)
	f.annotate(name, "example.com/wakes", "true")
}

// need makes the agents report that their nodes need a reboot.
func (f *fleet) need(names ...string) {
	for _, name := range names {
		f.needSince(name, time.Now())
	}
}

// needSince makes a node need a reboot since a time.
func (f *fleet) needSince(name string, since time.Time) {
	f.plays(name, agents.Report(agents.Staged(since)))
}

// start makes the agent cordon the node and begin to drain.
func (f *fleet) start(name string) { f.plays(name, agents.Start(time.Now())) }

// abort makes the agent give up the drain and uncordon the node.
func (f *fleet) abort(name string) {
	f.plays(name, agents.Abort(v1alpha1.ReasonDrainTimedOut, "db-0 stays", time.Now()))
}

// commit makes the agent pass the point of no return.
func (f *fleet) commit(name string) { f.plays(name, agents.Commit(time.Now())) }

// boot gives the machine a new boot ID and makes its agent report.
func (f *fleet) boot(name string, boot int) {
	f.plays(name, agents.Boot(bootID(name, boot)), agents.Report(agents.UpToDate(time.Now())))
}

// reboot plays a whole granted reboot.
func (f *fleet) reboot(name string) {
	f.start(name)
	f.comeBack(name)
}

// comeBack plays the rest of a reboot that has begun.
func (f *fleet) comeBack(name string) {
	f.commit(name)
	f.boot(name, 2)
}

// finishes waits until the manager has put a node back in service.
func (f *fleet) finishes(name string) {
	GinkgoHelper()
	Eventually(func() protocol.GrantState { return f.grant(name).State }).Should(Equal(protocol.GrantFinished))
}

// next waits until a node is granted, and returns its name.
func (f *fleet) next() string {
	GinkgoHelper()
	var granted []string
	Eventually(func() []string { granted = f.granted(); return granted }).Should(HaveLen(1))
	return granted[0]
}

// show waits until nodes have a reason of RebootPermitted.
func (f *fleet) show(reason string, nodes ...string) {
	GinkgoHelper()
	for _, name := range nodes {
		Eventually(f.reason).WithArguments(name).Should(Equal(reason))
	}
}

func policyStatus(p *v1alpha1.RebootPolicy) v1alpha1.RebootPolicyStatus {
	var now v1alpha1.RebootPolicy
	Expect(api.Get(context.Background(), client.ObjectKeyFromObject(p), &now)).To(Succeed())
	return now.Status
}

func grantsOf(p *v1alpha1.RebootPolicy) []v1alpha1.LedgerEntry { return policyStatus(p).Grants }

// conditionOf returns a condition of a policy, or the zero value.
func conditionOf(p *v1alpha1.RebootPolicy, kind string) metav1.Condition {
	return ptr.Deref(meta.FindStatusCondition(policyStatus(p).Conditions, kind), metav1.Condition{})
}

func isGone(p *v1alpha1.RebootPolicy) bool {
	return apierrors.IsNotFound(api.Get(context.Background(), client.ObjectKeyFromObject(p), &v1alpha1.RebootPolicy{}))
}

// create creates an object until the end of the spec.
func create(object client.Object) {
	GinkgoHelper()
	Expect(api.Create(context.Background(), object)).To(Succeed())
	DeferCleanup(func() { Expect(client.IgnoreNotFound(api.Delete(context.Background(), object))).To(Succeed()) })
}
