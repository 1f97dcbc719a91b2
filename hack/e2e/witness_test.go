package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
)

// witness watches a site by itself, from the begin of a reboot to its end, and is told nothing by the operator: nodes
// through the fleet's recorder, and each revision of each pod.
type witness struct {
	site  *site
	nodes *fleet.Recorder

	mu sync.Mutex
	// ready are the pods of each workload, and whether they are.
	ready map[string]map[types.UID]bool
	// fewest are the fewest Ready pods there ever were of each workload.
	fewest map[string]int
	// graceful are the nodes whose kubelet has said that it ends its pods because the machine goes down.
	graceful map[string]bool
}

// floors are the fewest pods of each workload that its PodDisruptionBudget allows.
var floors = map[string]int{"front": 3, "cart": 2}

// witnessed starts one that sees all until the spec ends.
func (s *site) witnessed() *witness {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	w := &witness{site: s, ready: map[string]map[types.UID]bool{}, fewest: map[string]int{}, graceful: map[string]bool{}}
	core := s.cluster.Client().CoreV1()
	var err error
	w.nodes, err = fleet.Record(ctx, s.cluster.Client())
	Expect(err).NotTo(HaveOccurred())
	pods, err := core.Pods("shop").List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, pod := range pods.Items {
		w.note(&pod, true)
	}
	w.count()
	w.watch(ctx, pods.ResourceVersion, core.Pods("shop").Watch)
	w.watch(ctx, pods.ResourceVersion, core.Nodes().Watch)
	return w
}

// watch notes every revision after one.
func (w *witness) watch(ctx context.Context, after string, open func(context.Context, metav1.ListOptions) (watch.Interface, error)) {
	GinkgoHelper()
	revisions, err := watchtools.NewRetryWatcherWithContext(ctx, after, &cache.ListWatch{WatchFuncWithContext: open})
	Expect(err).NotTo(HaveOccurred())
	go func() {
		for event := range revisions.ResultChan() {
			switch object := event.Object.(type) {
			case *corev1.Pod:
				w.note(object, event.Type != watch.Deleted)
				w.count()
			case *corev1.Node:
				w.hear(object)
			}
		}
	}()
}

// hear notes what a kubelet says while its machine goes down in order.
func (w *witness) hear(node *corev1.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.Contains(condition(node, corev1.NodeReady).Message, "node is shutting down") {
		w.graceful[node.Name] = true
	}
}

func (w *witness) note(pod *corev1.Pod, exists bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	app := pod.Labels["app"]
	if w.ready[app] == nil {
		w.ready[app] = map[types.UID]bool{}
	}
	w.ready[app][pod.UID] = exists && isReady(*pod)
}

func (w *witness) count() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for app, pods := range w.ready {
		ready := 0
		for _, is := range pods {
			if is {
				ready++
			}
		}
		if fewest, known := w.fewest[app]; !known || ready < fewest {
			w.fewest[app] = ready
		}
	}
}

// testify says what must have held at every moment: at most one node was unavailable, no budget was broken, and whoever
// was rebooted went down in order.
func (w *witness) testify() {
	GinkgoHelper()
	w.nodes.Read(func(line *timeline.Timeline) {
		Expect(len(line.Peak().Nodes)).To(BeNumerically("<=", 1), "unavailable at once: %v", line.Peak().Nodes)
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, run := range w.runs() {
		Expect(w.graceful).To(HaveKeyWithValue(run.Node, true), "its kubelet has ended its pods before the machine went down")
	}
	for app, floor := range floors {
		Expect(w.fewest[app]).To(BeNumerically(">=", floor), "Ready pods of %s", app)
	}
	w.site.tell("at most 1 node unavailable at any moment; Ready pods never below front %d of 4, cart %d of 3", w.fewest["front"], w.fewest["cart"])
}

// phases tells how long each node took.
func (w *witness) phases() {
	for _, run := range w.runs() {
		p := run.Phases()
		w.site.tell("%s: drain %s, reboot %s, settle %s", run.Node, seconds(p.Drain), seconds(p.Reboot), seconds(p.Settle))
	}
}

// runs are the reboots, in order.
func (w *witness) runs() []timeline.Run {
	var runs []timeline.Run
	w.nodes.Read(func(line *timeline.Timeline) { runs = line.Runs() })
	slices.SortFunc(runs, func(a, b timeline.Run) int { return a.Granted.Compare(b.Granted) })
	return runs
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
