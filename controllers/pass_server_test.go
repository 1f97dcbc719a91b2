package controllers

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/hack/judge/definition"
	"github.com/reboot-operator/reboot-operator/hack/simulation/apiserver"
)

const (
	slots, needy      = 10, 150
	workers, limiting = "workers", "limiting"
)

// server is an API server in memory with a manager. It also plays the agents.
type server struct {
	*apiserver.Client

	store *apiserver.Store
	// cached are the Nodes of the manager's cache, which is up to date. stale overrides Nodes by
	// name, and nil means that the Node is missing.
	cached, stale map[string]*corev1.Node
	// old is the outdated policy in the cache, or nil if the cache is up to date.
	old *v1alpha1.RebootPolicy
	// published is the time when a grant was last published. read are the Nodes that were read live
	// since the last pass began, and written the Nodes that were written before that.
	published     time.Time
	read, written []string
	// fault returns the error of a write to an object, or nil to carry it out. It may be nil.
	fault func(name string) error
	// unread returns the error of a live read of a Node, or nil. It may be nil.
	unread func(name string) error
	// between is a change of a Node by somebody else before it is read live, or nil.
	between    func(*corev1.Node)
	reconciler *RebootPolicyReconciler
}

// newServer returns a server with a policy all of whose slots are in use, and many nodes that
// already show why they wait.
func newServer(t testing.TB, size int, now clock.PassiveClock) *server {
	t.Helper()
	rules, err := definition.Shipped()
	if err != nil {
		t.Fatal(err)
	}
	return newServerWith(t, rules, size, now)
}

// newServerWith is like newServer, but checks policies against rules, or not if they are nil.
func newServerWith(t testing.TB, rules *definition.Definition, size int, now clock.PassiveClock) *server {
	t.Helper()
	s := &server{cached: map[string]*corev1.Node{}, stale: map[string]*corev1.Node{}}
	s.store = apiserver.New(rules, s.watch)
	s.Client = apiserver.NewClient(s.store)
	s.reconciler = &RebootPolicyReconciler{
		Client: interceptor.NewClient(s.Client, interceptor.Funcs{
			Get: s.getCached, List: s.listCached,
			Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
				return s.write(object, func() error { return c.Patch(ctx, object, patch, options...) })
			},
			SubResourcePatch: func(ctx context.Context, c client.Client, _ string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
				return s.write(object, func() error { return c.Status().Patch(ctx, object, patch, options...) })
			},
			SubResourceUpdate: func(ctx context.Context, c client.Client, _ string, object client.Object, options ...client.SubResourceUpdateOption) error {
				return s.write(object, func() error { return c.Status().Update(ctx, object, options...) })
			},
		}),
		Live:     interceptor.NewClient(s.Client, interceptor.Funcs{Get: s.getLive}),
		Recorder: &events.FakeRecorder{}, Clock: now, Metrics: NewMetrics(prometheus.NewRegistry()), Paces: DefaultPaces,
	}
	s.reconciler.assemble()
	limit := intstr.FromInt32(slots)
	s.create(t, &v1alpha1.RebootPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: workers, UID: "1", Finalizers: []string{v1alpha1.Finalizer}},
		Spec:       v1alpha1.RebootPolicySpec{Concurrency: &v1alpha1.Concurrency{MaxUnavailable: &limit}, Reboot: &v1alpha1.Reboot{Settle: &v1alpha1.Duration{}}},
	})
	for i := range size {
		s.create(t, serverNode(i, i < needy, now.Now()))
	}
	for range 2 * needy / conditionsPerPass {
		s.pass(t)
	}
	return s
}

func serverNode(i int, needs bool, now time.Time) *corev1.Node {
	zone, since := "eu-central-1"+string(rune('a'+i%3)), metav1.NewTime(now.Add(-time.Hour).Truncate(time.Second))
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("ip-10-%03d-%03d.eu-central-1.compute.internal", i>>8, i&255), UID: types.UID(strconv.Itoa(i)),
			Labels: map[string]string{
				corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", corev1.LabelInstanceTypeStable: "m6i.4xlarge",
				corev1.LabelTopologyZone: zone, corev1.LabelTopologyRegion: "eu-central-1", "topology.ebs.csi.aws.com/zone": zone,
				"node.kubernetes.io/lifecycle": "normal", "example.com/pool": "workers", "example.com/cluster": "production-eu-1",
				"node-role.kubernetes.io/worker": "", v1alpha1.LabelOSID: "flatcar", v1alpha1.LabelOSVersion: "4593.1.0",
			},
			Annotations: map[string]string{},
		},
		Status: corev1.NodeStatus{
			NodeInfo: corev1.NodeSystemInfo{BootID: fmt.Sprintf("%08x-0000-4000-8000-000000000000", i)},
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastTransitionTime: since},
				{Type: v1alpha1.NodeRebootRequired, Status: corev1.ConditionFalse, Reason: string(v1alpha1.ReasonUpToDate), LastTransitionTime: since},
			},
		},
	}
	if needs {
		node.Status.Conditions[1].Status, node.Status.Conditions[1].Reason = corev1.ConditionTrue, string(v1alpha1.ReasonUpdateStaged)
	}
	return node
}

func (s *server) create(t testing.TB, object client.Object) {
	t.Helper()
	if err := s.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// change changes a Node or a policy as somebody else than the manager.
func change[T client.Object](t testing.TB, s *server, name string, how func(T)) {
	t.Helper()
	if !apiserver.Change(s.store, name, "kubectl", how) {
		t.Fatalf("%s is as it was, or the API server refuses it", name)
	}
}

// beat is a heartbeat of a kubelet.
func beat(node *corev1.Node) {
	c := &node.Status.Conditions[0]
	c.LastHeartbeatTime = metav1.NewTime(c.LastHeartbeatTime.Add(time.Second))
}

// lag makes the cache show an old Node from now on, or none if it is nil.
func (s *server) lag(name string, old *corev1.Node) {
	s.stale[name] = old
	s.reconciler.fleet.changed.Store(name, true)
}

func (s *server) remove(t testing.TB, object client.Object) {
	t.Helper()
	if err := s.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// node returns a Node as in the manager's cache.
func (s *server) node(name string) *corev1.Node {
	return s.cached[name].DeepCopy()
}

func (s *server) policy() *v1alpha1.RebootPolicy {
	policy, _ := apiserver.Read[*v1alpha1.RebootPolicy](s.store, workers)
	return policy
}

func (s *server) pass(t testing.TB) {
	t.Helper()
	s.read, s.written, s.published = nil, nil, time.Time{}
	if _, err := s.reconciler.Reconcile(t.Context(), request(workers)); err != nil {
		t.Fatal(err)
	}
}

// share moves limit and ledger to another policy.
func share(t testing.TB, s *server) {
	t.Helper()
	was := s.policy()
	s.create(t, &v1alpha1.RebootPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: limiting, UID: "2", Finalizers: []string{v1alpha1.Finalizer}},
		Spec: v1alpha1.RebootPolicySpec{
			NodeSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"example.com/pool": "none"}}, Concurrency: was.Spec.Concurrency,
		},
	})
	change(t, s, limiting, func(p *v1alpha1.RebootPolicy) {
		p.Status = v1alpha1.RebootPolicyStatus{Seq: was.Status.Seq, Limit: was.Status.Limit, Grants: was.Status.Grants}
		for i := range p.Status.Grants {
			p.Status.Grants[i].Policy = workers
		}
	})
	change(t, s, workers, func(p *v1alpha1.RebootPolicy) {
		p.Spec.Concurrency, p.Status.Grants = &v1alpha1.Concurrency{Shared: limiting}, nil
	})
}

// ledger returns the entries of the ledger.
func (s *server) ledger() []v1alpha1.LedgerEntry {
	if holder, ok := apiserver.Read[*v1alpha1.RebootPolicy](s.store, limiting); ok {
		return holder.Status.Grants
	}
	return s.policy().Status.Grants
}

// seqOf returns the number of a node's entry in the policy's ledger, or 0.
func (s *server) seqOf(node string) int64 {
	for _, e := range s.policy().Status.Grants {
		if e.Node == node {
			return e.Seq
		}
	}
	return 0
}

// Writes that may be due for a granted reboot.
const dueGrant, dueEnd, dueCancelled, dueHooks = "the grant", "its end", "its cancellation", "hooks"

// due makes a write due for the node that has held its grant for longest.
func (s *server) due(t testing.TB, description string) {
	t.Helper()
	node := s.ledger()[0].Node
	switch description {
	case dueGrant:
		change(t, s, node, ungrant)
	case dueCancelled:
		change(t, s, node, func(node *corev1.Node) { node.Annotations[v1alpha1.AnnotationPaused] = "true" })
	case dueHooks:
		change(t, s, workers, func(p *v1alpha1.RebootPolicy) {
			p.Spec.Hooks = &v1alpha1.Hooks{After: []v1alpha1.AnnotationKey{"example.com/ok"}}
		})
		s.comeBack(t)
	case dueEnd:
		s.comeBack(t)
	}
}

// unledger removes the entry of that node from the ledger.
func unledger(p *v1alpha1.RebootPolicy) { p.Status.Grants = p.Status.Grants[1:] }

// holidays pauses a policy.
func holidays(p *v1alpha1.RebootPolicy) { p.Spec.Pause = &v1alpha1.Pause{Reason: "holidays"} }

// unmark removes the taint of the manager.
func unmark(node *corev1.Node) { node.Spec.Taints = nil }

// ungrant removes a grant.
func ungrant(node *corev1.Node) { delete(node.Annotations, v1alpha1.AnnotationGrant) }

// progress makes the agent of a node report a phase of a granted reboot.
func (s *server) progress(t testing.TB, e v1alpha1.LedgerEntry, phase protocol.Phase) {
	t.Helper()
	instant := metav1.NewTime(s.reconciler.Clock.Now())
	change(t, s, e.Node, func(node *corev1.Node) {
		node.Annotations[v1alpha1.AnnotationProgress] = protocol.Progress{Seq: e.Seq, Phase: phase, BootID: e.BootID, At: instant}.String()
	})
}

// comeBack reboots the node that has held its grant for longest. It needs a reboot again at once,
// so that the number of such nodes stays the same.
func (s *server) comeBack(t testing.TB) {
	t.Helper()
	s.back(t, s.ledger()[0])
}

func (s *server) back(t testing.TB, e v1alpha1.LedgerEntry) {
	t.Helper()
	s.progress(t, e, protocol.PhaseRebooting)
	change(t, s, e.Node, func(node *corev1.Node) {
		node.Status.NodeInfo.BootID = fmt.Sprintf("%08x-0000-4000-8000-%012x", 1, e.Seq)
	})
}

// watch makes the cache show a revision of a Node.
func (s *server) watch(e apiserver.Event) {
	switch node, ok := e.After.(*corev1.Node); {
	case e.Kind != apiserver.Nodes:
		return
	case ok:
		s.cached[e.Name] = snapshot.Trim(node)
	default:
		delete(s.cached, e.Name)
	}
	s.reconciler.fleet.changed.Store(e.Name, true)
}

func (s *server) getCached(_ context.Context, _ client.WithWatch, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	node := s.cached[key.Name]
	if old, stale := s.stale[key.Name]; stale {
		node = old
	}
	if node == nil {
		return apierrors.NewNotFound(corev1.Resource("nodes"), key.Name)
	}
	*object.(*corev1.Node) = *node
	return nil
}

func (s *server) listCached(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
	err := c.List(ctx, list, options...)
	if policies, ok := list.(*v1alpha1.RebootPolicyList); ok && s.old != nil {
		for i := range policies.Items {
			if policies.Items[i].Name == s.old.Name {
				policies.Items[i] = *s.old.DeepCopy()
			}
		}
	}
	return err
}

func (s *server) getLive(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	s.read = append(s.read, key.Name)
	if s.unread != nil && s.unread(key.Name) != nil {
		return s.unread(key.Name)
	}
	if s.between != nil {
		apiserver.Change(s.store, key.Name, "kubelet", s.between)
	}
	return c.Get(ctx, key, object, options...)
}

// write carries out a write of the manager.
func (s *server) write(object client.Object, send func() error) error {
	if s.fault != nil {
		if err := s.fault(object.GetName()); err != nil {
			return err
		}
	}
	if err := send(); err != nil {
		return err
	}
	if node, ok := object.(*corev1.Node); ok {
		if s.published.IsZero() {
			s.written = append(s.written, node.Name)
		}
		if grant, err := protocol.ParseGrant(node.Annotations); err == nil && grant != nil && grant.State == protocol.GrantActive {
			s.published = time.Now()
		}
	}
	return nil
}
