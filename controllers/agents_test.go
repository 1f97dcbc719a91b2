package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/config/agent"
	"github.com/reboot-operator/reboot-operator/controllers"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var agentNamespaces atomic.Int32

// agentsManager is a manager with --manage-agents in its own namespace.
type agentsManager struct {
	namespace string
	log       *requestLog
	stop      func()
}

func bringAgents(image string) *agentsManager {
	a := &agentsManager{namespace: fmt.Sprintf("agents-%d", agentNamespaces.Add(1))}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: a.namespace}}
	Expect(api.Create(context.Background(), ns)).To(Succeed())
	a.start(image)
	return a
}

func (a *agentsManager) start(image string) {
	a.log = &requestLog{}
	config := env.Config()
	config.Wrap(a.log.Wrap)
	options := controllers.Options{
		MetricsAddr: "0", ProbeAddr: "0", Namespace: a.namespace, ManageAgents: true, AgentImage: image,
	}
	mgr, err := testenv.NewManager(config, options.Manager)
	Expect(err).NotTo(HaveOccurred())
	Expect(controllers.SetupAgents(mgr, options)).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	a.stop = func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()))
		a.stop = func() {}
	}
	DeferCleanup(func() { a.stop() })
}

// restart stops the manager and starts one with another image.
func (a *agentsManager) restart(image string) {
	a.stop()
	a.start(image)
}

func (a *agentsManager) key() client.ObjectKey {
	return client.ObjectKey{Namespace: a.namespace, Name: "reboot-operator-agent"}
}

// get returns the DaemonSet, or nil if it does not exist.
func (a *agentsManager) get() *appsv1.DaemonSet {
	set := &appsv1.DaemonSet{}
	err := api.Get(context.Background(), a.key(), set)
	if apierrors.IsNotFound(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return set
}

func (a *agentsManager) image() string {
	if set := a.get(); set != nil {
		return set.Spec.Template.Spec.Containers[0].Image
	}
	return ""
}

// nodes returns the node selector terms of the DaemonSet, one per line.
func (a *agentsManager) nodes() []string {
	set := a.get()
	switch {
	case set == nil:
		return []string{"nowhere"}
	case set.Spec.Template.Spec.Affinity == nil:
		return []string{"everywhere"}
	}
	var lines []string
	for _, term := range set.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		var line strings.Builder
		for _, r := range slices.Concat(term.MatchExpressions, term.MatchFields) {
			fmt.Fprintf(&line, "%s %s %v;", r.Key, r.Operator, r.Values)
		}
		lines = append(lines, line.String())
	}
	return lines
}

// edit changes the DaemonSet as a user does.
func (a *agentsManager) edit(change func(*appsv1.DaemonSet)) {
	set := a.get()
	before := set.DeepCopy()
	change(set)
	Expect(api.Patch(context.Background(), set, client.MergeFrom(before), client.FieldOwner("kubectl"))).To(Succeed())
}

// writes returns the manager's writes of DaemonSets.
func (a *agentsManager) writes() []string {
	return slices.Concat(a.log.Matching("PATCH", "/daemonsets"), a.log.Matching("POST", "/daemonsets"),
		a.log.Matching("PUT", "/daemonsets"), a.log.Matching("DELETE", "/daemonsets"))
}

// byHand creates the DaemonSet of the static manifest.
func (a *agentsManager) byHand() {
	set := &appsv1.DaemonSet{}
	Expect(yaml.UnmarshalStrict([]byte(agent.Manifest()), set)).To(Succeed())
	set.Namespace = a.namespace
	Expect(api.Create(context.Background(), set)).To(Succeed())
}

func selecting(pool string) *v1alpha1.LabelSelector {
	return &v1alpha1.LabelSelector{MatchLabels: map[string]string{poolLabel: pool}}
}

func selectingOperator(operator metav1.LabelSelectorOperator, values ...string) *v1alpha1.LabelSelector {
	return &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelSelectorRequirement{{Key: poolLabel, Operator: operator, Values: values}}}
}

// createPolicy creates a policy in dry-run mode, which does not get a finalizer.
func createPolicy(name string, selector *v1alpha1.LabelSelector) *v1alpha1.RebootPolicy {
	p := &v1alpha1.RebootPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       v1alpha1.RebootPolicySpec{NodeSelector: selector, Mode: v1alpha1.ModeDryRun},
	}
	Expect(api.Create(context.Background(), p)).To(Succeed())
	DeferCleanup(func() {
		deletePolicy(p)
		Eventually(isGone).WithArguments(p).Should(BeTrue())
	})
	return p
}

func deletePolicy(p *v1alpha1.RebootPolicy) {
	Expect(client.IgnoreNotFound(api.Delete(context.Background(), p))).To(Succeed())
}

func editPolicy(p *v1alpha1.RebootPolicy, change func(*v1alpha1.RebootPolicy)) {
	Expect(api.Get(context.Background(), client.ObjectKeyFromObject(p), p)).To(Succeed())
	before := p.DeepCopy()
	change(p)
	Expect(api.Patch(context.Background(), p, client.MergeFrom(before))).To(Succeed())
}

// notesOf returns the events about an object, each with its reason.
func notesOf(name string) []string {
	var list eventsv1.EventList
	Expect(api.List(context.Background(), &list)).To(Succeed())
	var notes []string
	for _, e := range list.Items {
		if e.Regarding.Name == name {
			notes = append(notes, e.Reason+": "+e.Note)
		}
	}
	return notes
}
