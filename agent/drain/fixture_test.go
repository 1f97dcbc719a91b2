package drain_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

const (
	soon    = time.Minute           // an API server on a busy machine
	polling = 10 * time.Millisecond // the polling interval of a spec

	firstDelayAtMost = 1200 * time.Millisecond // the first back-off
	stuckAfter       = 30 * time.Second        // see drain.ReasonStuckTerminating
)

var nodes int

// world is one node with its pods, and a drainer with that node's identity.
type world struct {
	node      string
	namespace string
	kubelet   *kubelet
	wire      *wire.Wire // the requests of the drainer
	drainer   *drain.Drainer

	mu       sync.Mutex
	results  map[string]int
	statuses []drain.Status // without Left
	leaving  []drain.Pod    // the last reported Left
}

func newWorld(ctx context.Context) *world {
	nodes++
	w := &world{node: fmt.Sprintf("n%d", nodes), wire: &wire.Wire{}, results: map[string]int{}}
	w.namespace = makeNamespace(ctx, nil)
	w.kubelet = startKubelet(w.node)
	w.drainer = &drain.Drainer{
		Pods:      asNode(w.wire, w.node),
		Policy:    as(w.wire, agentUser),
		Clock:     clock.RealClock{},
		Evictions: w.count,
	}
	return w
}

// stopClock installs a clock that does not move, so that a back-off cannot cause what happens next.
func (w *world) stopClock() *clocktesting.FakeClock {
	c := clocktesting.NewFakeClock(time.Now())
	w.drainer.Clock = c
	return c
}

func makeNamespace(ctx context.Context, labels map[string]string) string {
	ns, err := admin.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "drain-", Labels: labels}}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return ns.Name
}

// pods creates running, ready pods of a ReplicaSet on the node and waits until admission knows
// them.
func (w *world) pods(ctx context.Context, names ...string) []*corev1.Pod {
	pods := make([]*corev1.Pod, 0, len(names))
	for _, name := range names {
		pods = append(pods, w.create(ctx, name))
	}
	w.settle(ctx, pods[len(pods)-1])
	return pods
}

// pod creates one pod with changes.
func (w *world) pod(ctx context.Context, name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := w.create(ctx, name, changes...)
	w.settle(ctx, pod)
	return pod
}

func (w *world) create(ctx context.Context, name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: name, Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "web", Controller: new(true)},
			},
		},
		Spec: corev1.PodSpec{NodeName: w.node, Containers: []corev1.Container{{Name: "main", Image: "example.com/main"}}},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
	for _, change := range changes {
		change(pod)
	}
	status := pod.Status
	pod, err := admin.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	pod.Status, pod.ResourceVersion = status, "" // because a running drain may have changed it
	pod, err = admin.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return pod
}

// settle waits until admission for nodes has the pod in its cache, by a dry run. An earlier request
// would get a 404, which is correct but spoils specs that count requests.
func (w *world) settle(ctx context.Context, pod *corev1.Pod) {
	node := kubernetes.NewForConfigOrDie(impersonating("system:node:"+pod.Spec.NodeName, "system:nodes"))
	Eventually(func() error {
		err := node.CoreV1().Pods(pod.Namespace).EvictV1(ctx, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		})
		if apierrors.IsNotFound(err) {
			return err
		}
		return nil
	}, soon, polling).Should(Succeed())
}

func (w *world) get(ctx context.Context, name string) *corev1.Pod {
	pod, err := admin.CoreV1().Pods(w.namespace).Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return pod
}

// left returns the names of the pods in the namespace.
func (w *world) left(ctx context.Context) []string {
	list, err := admin.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	names := []string{}
	for _, pod := range list.Items {
		names = append(names, pod.Name)
	}
	return names
}

// budget creates a PodDisruptionBudget for the pods app=web that allows the given number of
// disruptions.
func (w *world) budget(ctx context.Context, name string, allowed int32) {
	_, err := admin.PolicyV1().PodDisruptionBudgets(w.namespace).Create(ctx, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: new(intstr.FromInt32(3)),
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	w.allow(ctx, name, allowed)
}

// allow sets the allowed disruptions in place of the disruption controller.
func (w *world) allow(ctx context.Context, name string, allowed int32) {
	budgets := admin.PolicyV1().PodDisruptionBudgets(w.namespace)
	Expect(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		pdb, err := budgets.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		pdb.Status.ObservedGeneration = pdb.Generation
		pdb.Status.DisruptionsAllowed = allowed
		pdb.Status.DesiredHealthy, pdb.Status.CurrentHealthy, pdb.Status.ExpectedPods = 3, 3+allowed, 4
		_, err = budgets.UpdateStatus(ctx, pdb, metav1.UpdateOptions{})
		return err
	})).To(Succeed())
}

func (w *world) dropBudget(ctx context.Context, name string) {
	Expect(admin.PolicyV1().PodDisruptionBudgets(w.namespace).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
}

func (w *world) count(result string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.results[result]++
}

// counted returns the number of times that each result was counted.
func (w *world) counted() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.results)
}

// status returns the last reported status.
func (w *world) status() drain.Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.statuses) == 0 {
		return drain.Status{Remaining: -1}
	}
	return w.statuses[len(w.statuses)-1]
}

// terminating returns "name: message" for each pod that is left.
func (w *world) terminating() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	lines := []string{}
	for _, p := range w.leaving {
		lines = append(lines, p.Name+": "+p.Message)
	}
	return lines
}

// blocked returns "name: reason: message" for each blocked pod.
func (w *world) blocked() []string {
	lines := []string{}
	for _, p := range w.status().Blocked {
		lines = append(lines, p.Name+": "+p.Reason+": "+p.Message)
	}
	return lines
}

// running is a Drain call under way.
type running struct {
	cancel context.CancelFunc
	done   chan error
}

func (w *world) start(spec v1alpha1.Drain, blocking ...v1alpha1.BlockingPod) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{cancel: cancel, done: make(chan error, 1)}
	go func() {
		defer GinkgoRecover()
		r.done <- w.drainer.Drain(ctx, w.node, drain.PodRules{Drain: spec, Blocking: blocking}, func(s drain.Status) {
			w.mu.Lock()
			defer w.mu.Unlock()
			// Left changes more often than the rest, at random times.
			w.leaving, s.Left = s.Left, nil
			if n := len(w.statuses); n == 0 || !reflect.DeepEqual(w.statuses[n-1], s) {
				w.statuses = append(w.statuses, s)
			}
		})
	}()
	DeferCleanup(cancel)
	return r
}

// wait returns the error of the Drain call once it has returned and all its goroutines have ended.
func (r *running) wait() error {
	GinkgoHelper()
	var err error
	Eventually(r.done, soon).Should(Receive(&err))
	Expect(goroutines()).NotTo(ContainSubstring("agent/drain."))
	return err
}

// goroutines returns the stacks of all goroutines.
func goroutines() string {
	var b strings.Builder
	Expect(pprof.Lookup("goroutine").WriteTo(&b, 2)).To(Succeed())
	return b.String()
}

func labelled(key, value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{key: value} }
}

func bare(p *corev1.Pod) { p.OwnerReferences = nil }

func ownedBy(kind string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.OwnerReferences[0].Kind = kind }
}

func on(node string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.NodeName = node } }

func phase(phase corev1.PodPhase) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

func mirror(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"} }

func rule(action v1alpha1.DrainAction, key, value string, order int32) v1alpha1.DrainRule {
	return v1alpha1.DrainRule{
		PodSelector: v1alpha1.LabelSelector{MatchLabels: map[string]string{key: value}}, Action: action, Order: order,
	}
}

func rules(rules ...v1alpha1.DrainRule) v1alpha1.Drain { return v1alpha1.Drain{Rules: rules} }

func key(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}
