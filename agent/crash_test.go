package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
	"github.com/reboot-operator/reboot-operator/agent/reboot"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// fault is what happens at one write.
type fault string

const (
	failBefore     fault = "fails before it is applied"
	failAfter      fault = "is applied and answers with an error"
	killAfter      fault = "is applied and the process is killed"
	scenarioLimit        = 90 * time.Second
	scenarioMax          = 1 // maxUnavailable
	crashNamespace       = "default"
)

// TestCrashAtEveryWrite runs one rolling reboot of two nodes, counts the API writes of the manager and of the agents, and
// then runs it again once for each of them and each fault. In every run the limit holds at every revision that an
// independent watcher sees, each node is rebooted exactly once, and nobody is left cordoned.
func TestCrashAtEveryWrite(t *testing.T) {
	api, config := crashCluster(t)
	reference := runScenario(t, api, config, "reference", 0, "")
	t.Logf("%d writes in the reference run:\n%s", len(reference), strings.Join(reference, "\n"))
	if len(reference) < 15 {
		t.Fatalf("only %d writes: the scenario does not do what it should", len(reference))
	}
	for k := 1; k <= len(reference); k++ {
		for i, f := range []fault{failBefore, failAfter, killAfter} {
			if testing.Short() && k%5 != 0 {
				continue
			}
			t.Run(fmt.Sprintf("write %d (%s) %s", k, reference[k-1], f), func(t *testing.T) {
				runScenario(t, api, config, fmt.Sprintf("w%d-%d", k, i), k, f)
			})
		}
	}
}

// crashCluster is an API server on which nodes are plainly impersonated; who may do what is proved elsewhere.
func crashCluster(t *testing.T) (client.Client, *rest.Config) {
	t.Helper()
	env, err := testenv.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := env.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	must(t, api.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "nodes"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:authenticated"}},
	}))
	return api, env.Config
}

// scenario is one rolling reboot with at most one fault in it.
type scenario struct {
	t      *testing.T
	api    client.Client
	config *rest.Config
	name   string

	at    int
	fault fault

	mu     sync.Mutex
	writes []string
	wg     sync.WaitGroup
}

// runScenario runs it and returns its writes in order.
func runScenario(t *testing.T, api client.Client, config *rest.Config, name string, at int, f fault) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scenarioLimit)
	s := &scenario{t: t, api: api, config: config, name: name, at: at, fault: f}
	defer s.wg.Wait()
	defer cancel()
	policy := s.createPolicy(ctx)
	nodes := []*crashedHost{s.createHost(ctx, "a"), s.createHost(ctx, "b")}
	watched := s.watch(ctx)
	manager := s.process("manager", s.newManager)
	manager.start(ctx)
	for _, n := range nodes {
		n.agent.start(ctx)
	}
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		return s.done(ctx, policy, nodes), nil
	})
	if err != nil {
		t.Errorf("the rolling reboot did not end: %s", s.describe(policy, nodes))
	}
	manager.kill()
	for _, n := range nodes {
		n.agent.kill()
		if got := n.reboots.Load(); got != 1 {
			t.Errorf("node %s was rebooted %d times", n.name, got)
		}
	}
	if most := watched.Load(); most > scenarioMax {
		t.Errorf("%d nodes were cordoned at once", most)
	}
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
			NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"scenario": s.name}},
			Concurrency:  &v1alpha1.Concurrency{MaxUnavailable: &most},
			Settle:       &metav1.Duration{},
			Drain:        &v1alpha1.Drain{UnmanagedPods: v1alpha1.PodDisposalDelete},
		},
	}
	must(s.t, s.api.Create(ctx, policy))
	return policy
}

// done: every node has been rebooted, is in service and out of the ledger.
func (s *scenario) done(ctx context.Context, policy *v1alpha1.RebootPolicy, nodes []*crashedHost) bool {
	var p v1alpha1.RebootPolicy
	if s.api.Get(ctx, client.ObjectKeyFromObject(policy), &p) != nil || len(p.Status.Grants) > 0 {
		return false
	}
	for _, m := range nodes {
		var node corev1.Node
		if s.api.Get(ctx, client.ObjectKey{Name: m.name}, &node) != nil || node.Spec.Unschedulable || m.reboots.Load() == 0 {
			return false
		}
		g, err := v1alpha1.ParseGrant(node.Annotations)
		if err != nil || g == nil || g.State != v1alpha1.GrantFinished {
			return false
		}
		for _, c := range node.Status.Conditions {
			if c.Type == v1alpha1.NodeRebootPermitted || c.Type == v1alpha1.NodeRebootRequired && c.Status != corev1.ConditionFalse {
				return false
			}
		}
	}
	return true
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
		if err := s.api.Get(ctx, client.ObjectKey{Name: m.name}, &node); err != nil {
			return err.Error()
		}
		fmt.Fprintf(&out, "%s: cordoned %t, boot %s, %v\n", m.name, node.Spec.Unschedulable, node.Status.NodeInfo.BootID, node.Annotations)
		for _, c := range node.Status.Conditions {
			fmt.Fprintf(&out, "  %s=%s %s %s\n", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return out.String()
}

// watch sees every revision of the scenario's nodes, and keeps the most that were ever cordoned at once.
func (s *scenario) watch(ctx context.Context) *atomic.Int32 {
	watcher, err := client.NewWithWatch(s.config, client.Options{Scheme: s.api.Scheme()})
	must(s.t, err)
	events, err := watcher.Watch(ctx, &corev1.NodeList{}, client.MatchingLabels{"scenario": s.name})
	must(s.t, err)
	most, cordoned := &atomic.Int32{}, map[string]bool{}
	s.wg.Go(func() {
		for event := range events.ResultChan() {
			node, ok := event.Object.(*corev1.Node)
			if !ok {
				continue
			}
			delete(cordoned, node.Name)
			if node.Spec.Unschedulable {
				cordoned[node.Name] = true
			}
			most.Store(max(most.Load(), int32(len(cordoned))))
		}
	})
	return most
}

func (s *scenario) cleanUp(policy *v1alpha1.RebootPolicy, nodes []*crashedHost) {
	ctx := s.t.Context()
	for _, m := range nodes {
		must(s.t, m.bus.Stop())
		must(s.t, client.IgnoreNotFound(s.api.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name}})))
	}
	must(s.t, s.api.Patch(ctx, policy, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	must(s.t, s.api.Delete(ctx, policy))
}

// process is one of the programs: its first and every later life after a kill.
type process struct {
	s     *scenario
	name  string
	build func(ctx context.Context, config *rest.Config) (manager.Manager, error)

	mu   sync.Mutex
	dead *atomic.Bool
	stop context.CancelFunc
}

func (s *scenario) process(name string, build func(context.Context, *rest.Config) (manager.Manager, error)) *process {
	return &process{s: s, name: name, build: build}
}

// start begins a new life.
func (p *process) start(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	dead := &atomic.Bool{}
	life, stop := context.WithCancel(ctx)
	p.dead, p.stop = dead, stop
	config := rest.CopyConfig(p.s.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return wire(func(r *http.Request) (*http.Response, error) { return p.request(ctx, dead, next, r) })
	})
	mgr, err := p.build(life, config)
	if err != nil {
		p.s.t.Errorf("building %s: %v", p.name, err)
		return
	}
	p.s.wg.Go(func() {
		// A process that is killed cannot say good-bye, so its error says nothing.
		_ = mgr.Start(life)
	})
}

// kill ends the life at once: nothing it asks for from now on reaches the API server.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead != nil {
		p.dead.Store(true)
		p.stop()
	}
}

var errInjected = errors.New("injected fault")

type wire func(*http.Request) (*http.Response, error)

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) { return w(r) }

// request is the wire between a life and the API server; the scenario's fault happens here.
func (p *process) request(ctx context.Context, dead *atomic.Bool, next http.RoundTripper, r *http.Request) (*http.Response, error) {
	if dead.Load() {
		return nil, errInjected
	}
	due := isWrite(r) && p.s.count(p.name+" "+r.Method+" "+r.URL.Path)
	if due && p.s.fault == failBefore {
		return nil, errInjected
	}
	response, err := next.RoundTrip(r)
	if !due || err != nil {
		return response, err
	}
	_ = response.Body.Close()
	if p.s.fault == killAfter {
		p.kill()
		p.s.wg.Go(func() { p.start(ctx) })
	}
	return nil, errInjected
}

// isWrite leaves out what nothing depends on: events.
func isWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "/events")
}

// count notes a write and tells whether it is the one that meets the fault.
func (s *scenario) count(write string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, write)
	return len(s.writes) == s.at
}

func (s *scenario) newManager(_ context.Context, config *rest.Config) (manager.Manager, error) {
	mgr, err := controllers.NewManager(config, controllers.Options{MetricsAddr: "0", ProbeAddr: "0"})
	if err != nil {
		return nil, err
	}
	r := &controllers.RebootPolicyReconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder("manager"), Clock: clock.RealClock{},
	}
	return mgr, r.SetupWithManager(mgr, controllers.Unnamed)
}

// crashedHost is a host with its own bus, update_engine and logind, and its Node.
type crashedHost struct {
	s       *scenario
	name    string
	bus     *hosttest.Bus
	engine  *hosttest.UpdateEngine
	agent   *process
	boot    string
	reboots atomic.Int32
}

func (s *scenario) createHost(ctx context.Context, suffix string) *crashedHost {
	dir, err := os.MkdirTemp("", "crash")
	must(s.t, err)
	s.t.Cleanup(func() { must(s.t, os.RemoveAll(dir)) })
	m := &crashedHost{s: s, name: s.name + "-" + suffix, boot: filepath.Join(dir, "boot_id")}
	m.bus, err = hosttest.Start(dir)
	must(s.t, err)
	m.engine, err = m.bus.StartUpdateEngine()
	must(s.t, err)
	m.engine.SetStatus(hosttest.NeedReboot("4001.0.0"))
	logind, err := m.bus.StartLogind()
	must(s.t, err)
	logind.OnReboot(func() { s.wg.Go(func() { m.reboot(ctx) }) })
	m.agent = s.process("agent", m.newAgent)
	must(s.t, s.api.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: map[string]string{"scenario": s.name}}}))
	m.comesUp(ctx)
	s.createPod(ctx, m.name)
	return m
}

// createPod puts one pod on the node that nothing keeps there: no kubelet, so the API server deletes it at once.
func (s *scenario) createPod(ctx context.Context, node string) {
	zero := int64(0)
	must(s.t, s.api.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: node, Namespace: crashNamespace},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: &zero, Containers: []corev1.Container{{Name: "c", Image: "i"}},
		},
	}))
}

func (m *crashedHost) newAgent(ctx context.Context, config *rest.Config) (manager.Manager, error) {
	return newAgent(ctx, config, options{
		node: m.name, identity: identityNode, bus: m.bus.Address(), hostRoot: filepath.Dir(m.boot), bootIDFile: m.boot, probes: "0", metrics: "0",
		engines: enginesAuto,
	}, reboot.NewMetrics(prometheus.NewRegistry()))
}

// reboot is what the crashedHost does when logind is asked: everything on it dies, and a new boot begins.
func (m *crashedHost) reboot(ctx context.Context) {
	m.agent.kill()
	m.reboots.Add(1)
	m.engine.SetStatus(hosttest.Idle())
	m.comesUp(ctx)
	m.agent.start(ctx)
}

func (m *crashedHost) comesUp(ctx context.Context) {
	id := fmt.Sprintf("%08x-0000-4000-8000-%012x", m.reboots.Load(), time.Now().UnixNano()&0xffffffffffff)
	if err := os.WriteFile(m.boot, []byte(id+"\n"), 0o600); err != nil {
		m.s.t.Errorf("writing the boot ID: %v", err)
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"nodeInfo": map[string]any{"bootID": id},
		"conditions": []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "KubeletReady", "lastTransitionTime": metav1.Now().Format(time.RFC3339),
		}},
	}})
	if err != nil {
		m.s.t.Errorf("encoding a status: %v", err)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
	if err := m.s.api.Status().Patch(ctx, node, client.RawPatch(types.StrategicMergePatchType, patch)); err != nil && ctx.Err() == nil {
		m.s.t.Errorf("bringing %s up: %v", m.name, err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
