package e2e_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/fleet"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/judge/feed"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// witness watches the nodes, policies, and the shop's pods and budgets from the beginning of a
// reboot to its end. It does not rely on the operator.
type witness struct {
	site  *site
	nodes *fleet.Recorder
}

// witnessed returns a witness that watches until the spec ends.
func witnessed(s *site) *witness {
	GinkgoHelper()
	ctx, cancel := context.WithCancel(context.Background())
	DeferCleanup(cancel)
	shop := []client.ListOption{client.InNamespace("shop")}
	changes, err := feed.Watch(ctx, s, feed.Kind{List: &corev1.NodeList{}}, feed.Kind{List: &v1alpha1.RebootPolicyList{}},
		feed.Kind{List: &corev1.PodList{}, Options: shop}, feed.Kind{List: &policyv1.PodDisruptionBudgetList{}, Options: shop})
	Expect(err).NotTo(HaveOccurred())
	return &witness{site: s, nodes: &fleet.Recorder{Feed: changes}}
}

// testify checks what must have been true all the time: the judge finds nothing, at most one node
// was unavailable, and each rebooted node went down gracefully. It prints the duration of each
// reboot.
func (w *witness) testify(ctx context.Context) {
	GinkgoHelper()
	changes := w.nodes.Read()
	Expect(len(changes.Peak)).To(BeNumerically("<=", 1), "unavailable at once: %v", changes.Peak)
	j := judge.New(judge.Options{TrueClocks: true, Semaphore: true})
	graceful, ended, revisions, budgets := map[string]bool{}, false, 0, 0
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	history, err := w.nodes.Feed.Await(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, r := range history {
		j.Take(r)
		if revisions++; r.Budget != nil {
			budgets++
		}
		if pod := r.Pod; pod != nil && pod.DeletionTimestamp != nil && pod.Labels["app"] != "store" { // the store has no budget
			ended = true
		}
		if r.Node != nil && strings.Contains(v1alpha1.NodeCondition(r.Node.Status.Conditions, corev1.NodeReady).Message, "node is shutting down") {
			graceful[r.Name] = true
		}
	}
	j.End(time.Now())
	Expect(j.Violations()).To(BeEmpty())
	for _, run := range changes.Runs {
		Expect(graceful).To(HaveKeyWithValue(run.Node, true), "its kubelet has ended its pods before the machine went down")
	}
	// A single machine may have no such pods, if the previous reboot left all of them on other
	// machines.
	if ended || len(changes.Runs) >= len(w.site.rack.Machines) {
		Expect(budgets).To(BeNumerically(">", 2), "evictions pass by the budgets")
	}
	w.site.logf("at most 1 node unavailable at any moment; the judge finds nothing in %d revisions, %d of budgets", revisions, budgets)
	for _, run := range changes.Runs {
		p := run.Phases()
		w.site.logf("%s: drain %s, reboot %s, settle %s", run.Node, terminal.Seconds(p.Drain), terminal.Seconds(p.Reboot), terminal.Seconds(p.Settle))
	}
}

// testifyIdentities checks the API server's audit log since a time: agents wrote only as their
// Nodes, every node wrote, and no request of the operator was refused.
func testifyIdentities(s *site, since time.Time) {
	GinkgoHelper()
	requests, err := s.cluster.Requests(since, time.Now())
	Expect(err).NotTo(HaveOccurred())
	writers := map[string]int{}
	for _, r := range requests {
		if !strings.HasPrefix(r.User, "system:serviceaccount:"+operator+":") {
			continue
		}
		Expect(r.Code).NotTo(BeElementOf(401, 403), "%s %s %s/%s by %s as %s", r.Verb, r.Resource, r.Namespace, r.Name, r.User, r.As)
		if strings.HasSuffix(r.User, ":"+agents) && r.IsWrite() {
			Expect(r.As).To(HavePrefix("system:node:"), "%s %s %s/%s", r.Verb, r.Resource, r.Namespace, r.Name)
			writers[strings.TrimPrefix(r.As, "system:node:")]++
		}
	}
	for _, m := range s.rack.Machines {
		Expect(writers).To(HaveKey(m.Name))
	}
	s.logf("agents wrote as their Nodes and nobody was refused anything: %v", writers)
}
