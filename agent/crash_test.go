package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers"
	"github.com/reboot-operator/reboot-operator/hack/judge"
	"github.com/reboot-operator/reboot-operator/hack/judge/feed"
)

// fault is the kind of failure at one write.
type fault string

const (
	failBefore     fault = "fails before it is applied"
	failAfter      fault = "is applied and answers with an error"
	killAfter      fault = "is applied and the process is killed"
	scenarioLimit        = 5 * time.Minute
	scenarioMax          = 1 // maxUnavailable
	crashNamespace       = "default"
)

// TestCrashAtEveryWrite runs one rolling reboot of two nodes and counts the API writes of the
// manager and the agents. It then repeats the run for each write and each fault. In every run the
// limit must hold at every revision that an independent watcher sees, each node must be rebooted
// exactly once, and no node may stay cordoned.
func TestCrashAtEveryWrite(t *testing.T) {
	faultAtEveryWrite(t, []fault{failBefore, failAfter, killAfter}, func(*scenario) {}, "a", "b")
}

// TestCrashAtEveryWrite_Rollback shows that an update that rolls back is tried only twice, no
// matter which process is killed at which write (behaviour 27).
func TestCrashAtEveryWrite_Rollback(t *testing.T) {
	faultAtEveryWrite(t, []fault{killAfter}, func(s *scenario) { s.rollsBack = true }, "a")
}

// TestCrashAtEveryWrite_FleetLock_Behaviour65 kills one process after each write. The clients of two
// hosts still get their permissions one after the other, each past the point of no return. The
// managers that are killed are also the servers.
func TestCrashAtEveryWrite_FleetLock_Behaviour65(t *testing.T) {
	faultAtEveryWrite(t, []fault{killAfter}, func(s *scenario) { s.fleetLock = true }, "a", "b")
}

func faultAtEveryWrite(t *testing.T, faults []fault, adapt func(*scenario), hosts ...string) {
	t.Helper()
	api, config := crashCluster(t)
	run := func(t *testing.T, name string, write int, f fault) []string {
		t.Helper()
		s := &scenario{t: t, api: api, config: config, name: name, at: write, fault: f}
		adapt(s)
		return runScenario(s, hosts...)
	}
	reference := run(t, "reference", 0, "")
	t.Logf("%d writes in the reference run:\n%s", len(reference), strings.Join(reference, "\n"))
	if len(reference) < 15 {
		t.Fatalf("only %d writes: the scenario does not do what it should", len(reference))
	}
	for k := 1; k <= len(reference); k++ {
		for i, f := range faults {
			if testing.Short() && k%(5*len(faults)) != 5*i {
				continue
			}
			t.Run(fmt.Sprintf("write %d (%s) %s", k, reference[k-1], f), func(t *testing.T) {
				run(t, fmt.Sprintf("w%d-%d", k, i), k, f)
			})
		}
	}
}

// crashCluster starts the API server. Nodes are impersonated without constraints, because other
// tests cover permissions.
func crashCluster(t *testing.T) (client.Client, *rest.Config) {
	t.Helper()
	scheme, err := controllers.Scheme()
	must(t, err)
	config, err := startServer()
	must(t, err)
	api, err := client.New(config, client.Options{Scheme: scheme})
	must(t, err)
	everybody := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "nodes"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}},
	}
	must(t, api.Create(t.Context(), everybody))
	t.Cleanup(func() { must(t, api.Delete(context.Background(), everybody)) })
	return api, config
}

// scenario is one rolling reboot with at most one fault in it.
type scenario struct {
	t      *testing.T
	api    client.Client
	config *rest.Config
	name   string

	at    int
	fault fault

	// rollsBack makes the hosts boot the old version again, so that their engines require the same
	// update again.
	rollsBack bool
	// fleetLock lets a FleetLock client of each host ask for the reboot, and reboot the host.
	fleetLock bool

	mu sync.Mutex
	// server is the address at which the running manager serves FleetLock.
	server string
	writes []string
	wg     sync.WaitGroup
}

// runScenario runs it with hosts of these names and returns its writes in order.
func runScenario(s *scenario, hosts ...string) []string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), scenarioLimit)
	defer s.wg.Wait()
	defer cancel()
	policy := s.createPolicy(ctx)
	nodes := make([]*crashedHost, 0, len(hosts))
	for _, name := range hosts {
		nodes = append(nodes, s.createHost(ctx, name))
	}
	watched := s.watch(ctx)
	manager := s.process("manager", s.newManager)
	manager.start(ctx)
	for _, n := range nodes {
		n.agent.start(ctx)
		if s.fleetLock {
			s.wg.Go(func() { n.runClient(ctx) })
		}
	}
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		return s.done(ctx, policy, nodes), nil
	})
	if err != nil {
		s.t.Errorf("the rolling reboot did not end: %s", s.describe(policy, nodes))
	}
	manager.kill()
	for _, n := range nodes {
		n.agent.kill()
		if got := n.reboots(); got != s.reboots() {
			s.t.Errorf("node %s was rebooted %d times, want %d", n.Name, got, s.reboots())
		}
	}
	s.judge(ctx, watched)
	s.cleanUp(policy, nodes)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

func (s *scenario) createPolicy(ctx context.Context) *v1alpha1.RebootPolicy {
	most := intstr.FromInt32(scenarioMax)
	policy := &v1alpha1.RebootPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: s.name},
		Spec: v1alpha1.RebootPolicySpec{
			NodeSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"scenario": s.name}},
			Concurrency:  &v1alpha1.Concurrency{MaxUnavailable: &most},
			Reboot:       &v1alpha1.Reboot{Settle: &v1alpha1.Duration{}},
			Drain:        &v1alpha1.Drain{UnmanagedPods: v1alpha1.PodDisposalDelete},
		},
	}
	must(s.t, s.api.Create(ctx, policy))
	return policy
}

// reboots returns the expected number of reboots of each node.
func (s *scenario) reboots() int {
	if s.rollsBack {
		return 2
	}
	return 1
}

// done reports whether every node has been rebooted, is in service, and has left the ledger.
func (s *scenario) done(ctx context.Context, policy *v1alpha1.RebootPolicy, nodes []*crashedHost) bool {
	var p v1alpha1.RebootPolicy
	if s.api.Get(ctx, client.ObjectKeyFromObject(policy), &p) != nil || len(p.Status.Grants) > 0 {
		return false
	}
	for _, m := range nodes {
		var node corev1.Node
		if s.api.Get(ctx, client.ObjectKey{Name: m.Name}, &node) != nil || node.Spec.Unschedulable || m.reboots() < s.reboots() {
			return false
		}
		g, err := protocol.ParseGrant(node.Annotations)
		if err != nil || g == nil || g.State != protocol.GrantFinished {
			return false
		}
		if !s.answered(&node) || s.fleetLock && !m.steady.Load() {
			return false
		}
	}
	return true
}

// answered reports whether the node needs nothing any more, or waits until somebody fixes its
// update.
func (s *scenario) answered(node *corev1.Node) bool {
	permitted := conditionOf(v1alpha1.NodeRebootPermitted)(node)
	if s.rollsBack {
		return permitted == "False UpdateNotApplied"
	}
	return permitted == "" && needOf(node) == "False UpToDate"
}

func (s *scenario) describe(policy *v1alpha1.RebootPolicy, nodes []*crashedHost) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var out strings.Builder
	var p v1alpha1.RebootPolicy
	if err := s.api.Get(ctx, client.ObjectKeyFromObject(policy), &p); err != nil {
		return err.Error()
	}
	fmt.Fprintf(&out, "grants %v, blocked %v\n", p.Status.Grants, p.Status.Blocked)
	for _, m := range nodes {
		var node corev1.Node
		if err := s.api.Get(ctx, client.ObjectKey{Name: m.Name}, &node); err != nil {
			return err.Error()
		}
		fmt.Fprintf(&out, "%s: cordoned %t, boot %s, %v\n", m.Name, node.Spec.Unschedulable, node.Status.NodeInfo.BootID, node.Annotations)
		for _, c := range node.Status.Conditions {
			fmt.Fprintf(&out, "  %s=%s %s %s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return out.String()
}

// watch collects every revision of the scenario's nodes and of its policy.
func (s *scenario) watch(ctx context.Context) *feed.Feed {
	api, err := client.NewWithWatch(s.config, client.Options{Scheme: s.api.Scheme()})
	must(s.t, err)
	changes, err := feed.Watch(ctx, api,
		feed.Kind{List: &corev1.NodeList{}, Options: []client.ListOption{client.MatchingLabels{"scenario": s.name}}},
		feed.Kind{List: &v1alpha1.RebootPolicyList{}, Options: []client.ListOption{client.MatchingFields{"metadata.name": s.name}}})
	must(s.t, err)
	return changes
}

// judge checks all revisions, once the watcher has seen the current one.
func (s *scenario) judge(ctx context.Context, changes *feed.Feed) {
	s.t.Helper()
	history, err := changes.Await(ctx)
	must(s.t, err)
	j := judge.New(judge.Options{TrueClocks: true, Semaphore: true})
	cordons := 0
	for _, r := range history {
		j.Take(r)
		if r.Node != nil && r.Node.Spec.Unschedulable {
			cordons++
		}
	}
	j.End(time.Now())
	for _, v := range j.Violations() {
		s.t.Error(v)
	}
	if cordons == 0 {
		s.t.Error("no node was seen cordoned: the witness has seen nothing")
	}
}

func (s *scenario) cleanUp(policy *v1alpha1.RebootPolicy, nodes []*crashedHost) {
	ctx := s.t.Context()
	for _, m := range nodes {
		must(s.t, client.IgnoreNotFound(s.api.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name}})))
	}
	must(s.t, s.api.Patch(ctx, policy, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	must(s.t, s.api.Delete(ctx, policy))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
