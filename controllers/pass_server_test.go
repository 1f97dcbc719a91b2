package controllers

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

const (
	slots, needy = 10, 150
	workers      = "workers"
)

// server is an API server that needs no time, and the manager's cache of it, which is never behind. It plays the agents, too.
type server struct {
	client.Client

	nodes toolscache.Indexer
	// stale is what the manager's cache has instead of the Node of a name; nil is nothing.
	stale  map[string]*corev1.Node
	policy *v1alpha1.RebootPolicy
	// holder is the policy whose limit and ledger the policy shares. Nil: it has its own.
	holder  *v1alpha1.RebootPolicy
	version int
	// published is when a grant was published last. Read are the Nodes that were read live since the last pass began, and written those
	// that were written before that.
	published     time.Time
	read, written []string
	// fault, where set, is what becomes of a write to an object. Nil: it is carried out.
	fault func(name string) error
	// unread, where set, is why a Node cannot be read live. Nil: it can.
	unread func(name string) error
	// between, where set, is what somebody writes to a Node before it is read live.
	between    func(*corev1.Node)
	reconciler *RebootPolicyReconciler
}

// newServer has a policy all of whose slots are in use, and many nodes that know why they wait.
func newServer(t testing.TB, size int, now clock.PassiveClock) *server {
	t.Helper()
	limit := intstr.FromInt32(slots)
	s := &server{nodes: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, nil), stale: map[string]*corev1.Node{}, policy: &v1alpha1.RebootPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: workers, UID: "1", ResourceVersion: "1", Finalizers: []string{v1alpha1.Finalizer}},
		Spec:       v1alpha1.RebootPolicySpec{Concurrency: &v1alpha1.Concurrency{MaxUnavailable: &limit}, Settle: &metav1.Duration{}},
	}}
	s.reconciler = &RebootPolicyReconciler{
		Client: s, Live: live{server: s}, Recorder: &events.FakeRecorder{}, Clock: now,
		Metrics: NewMetrics(prometheus.NewRegistry()), Paces: DefaultPaces,
	}
	s.reconciler.assemble()
	for i := range size {
		s.put(t, serverNode(i, i < needy, now.Now()))
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

func (s *server) put(t testing.TB, node *corev1.Node) {
	t.Helper()
	s.version++
	node.ResourceVersion = strconv.Itoa(s.version)
	if err := s.nodes.Update(snapshot.Trim(node)); err != nil {
		t.Fatal(err)
	}
	s.reconciler.fleet.changed.Store(node.Name, true)
}

// lag has the cache show a Node as it was, or for nil not at all, from now on.
func (s *server) lag(name string, old *corev1.Node) {
	s.stale[name] = old
	s.reconciler.fleet.changed.Store(name, true)
}

// lose deletes a Node.
func (s *server) lose(t testing.TB, name string) {
	t.Helper()
	if err := s.nodes.Delete(s.node(name)); err != nil {
		t.Fatal(err)
	}
	s.reconciler.fleet.changed.Store(name, true)
}

func (s *server) node(name string) *corev1.Node {
	object, _, _ := s.nodes.GetByKey(name)
	return object.(*corev1.Node).DeepCopy()
}

func (s *server) pass(t testing.TB) {
	t.Helper()
	s.read, s.written, s.published = nil, nil, time.Time{}
	if _, err := s.reconciler.Reconcile(t.Context(), request(workers)); err != nil {
		t.Fatal(err)
	}
}

// share moves limit and ledger to another policy.
func (s *server) share() {
	s.holder = &v1alpha1.RebootPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "limiting", UID: "2", ResourceVersion: "1", Finalizers: []string{v1alpha1.Finalizer}},
		Spec: v1alpha1.RebootPolicySpec{
			NodeSelector: &v1alpha1.LabelSelector{MatchLabels: map[string]string{"example.com/pool": "none"}}, Concurrency: s.policy.Spec.Concurrency,
		},
		Status: v1alpha1.RebootPolicyStatus{Seq: s.policy.Status.Seq, Limit: s.policy.Status.Limit, Grants: s.policy.Status.Grants},
	}
	for i := range s.holder.Status.Grants {
		s.holder.Status.Grants[i].Policy = workers
	}
	s.policy.Spec.Concurrency, s.policy.Status.Grants = &v1alpha1.Concurrency{Shared: s.holder.Name}, nil
}

// ledger has the grants.
func (s *server) ledger() []v1alpha1.LedgerEntry {
	if s.holder != nil {
		return s.holder.Status.Grants
	}
	return s.policy.Status.Grants
}

// seqOf is the number of a node's entry in the policy's ledger. 0: it has none.
func (s *server) seqOf(node string) int64 {
	for _, e := range s.policy.Status.Grants {
		if e.Node == node {
			return e.Seq
		}
	}
	return 0
}

// What may be due about a granted reboot.
const dueGrant, dueEnd, dueCancelled, dueHooks = "the grant", "its end", "its cancellation", "hooks"

// due makes a write due about the node that has held its grant for longest.
func (s *server) due(t testing.TB, what string) {
	t.Helper()
	node := s.policy.Status.Grants[0].Node
	switch what {
	case dueGrant:
		ungranted := s.node(node)
		delete(ungranted.Annotations, v1alpha1.AnnotationGrant)
		s.put(t, ungranted)
	case dueCancelled:
		s.pause(t, node)
	case dueHooks:
		s.policy.Spec.Hooks = &v1alpha1.Hooks{After: []v1alpha1.AnnotationKey{"example.com/ok"}}
		s.comeBack(t)
	case dueEnd:
		s.comeBack(t)
	}
}

// pause has an administrator pause a node.
func (s *server) pause(t testing.TB, name string) {
	t.Helper()
	node := s.node(name)
	node.Annotations[v1alpha1.AnnotationPaused] = "true"
	s.put(t, node)
}

// touch is a write of an agent that changes nothing: of the node that holds the last grant.
func (s *server) touch(t testing.TB) {
	t.Helper()
	s.put(t, s.node(s.policy.Status.Grants[slots-1].Node))
}

// begin has the agent of a node begin to drain.
func (s *server) begin(t testing.TB, e v1alpha1.LedgerEntry) {
	t.Helper()
	node, at := s.node(e.Node), metav1.NewTime(s.reconciler.Clock.Now())
	node.Annotations[v1alpha1.AnnotationProgress] = protocol.Progress{Seq: e.Seq, Phase: protocol.PhaseDraining, BootID: e.BootID, At: at}.String()
	s.put(t, node)
}

// comeBack reboots the node that has held its grant for longest. It needs a reboot again at once: there are as many as ever.
func (s *server) comeBack(t testing.TB) {
	t.Helper()
	s.back(t, s.ledger()[0])
}

func (s *server) back(t testing.TB, e v1alpha1.LedgerEntry) {
	t.Helper()
	node := s.node(e.Node)
	node.Annotations[v1alpha1.AnnotationProgress] = protocol.Progress{Seq: e.Seq, Phase: protocol.PhaseRebooting, BootID: e.BootID, At: metav1.NewTime(s.reconciler.Clock.Now())}.String()
	node.Status.NodeInfo.BootID = fmt.Sprintf("%08x-0000-4000-8000-%012x", 1, e.Seq)
	s.put(t, node)
}

func (s *server) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if policies, ok := list.(*v1alpha1.RebootPolicyList); ok {
		policies.Items = []v1alpha1.RebootPolicy{*s.policy.DeepCopy()}
		if s.holder != nil {
			policies.Items = append(policies.Items, *s.holder.DeepCopy())
		}
		return nil
	}
	var objects []runtime.Object
	for _, node := range s.nodes.List() {
		objects = append(objects, node.(runtime.Object))
	}
	return meta.SetList(list, objects)
}

// Get is from the cache.
func (s *server) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	node, there, _ := s.nodes.GetByKey(key.Name)
	if old, stale := s.stale[key.Name]; stale {
		node, there = old, old != nil
	}
	if !there {
		return apierrors.NewNotFound(corev1.Resource("nodes"), key.Name)
	}
	*object.(*corev1.Node) = *node.(*corev1.Node)
	return nil
}

// live is the server without the cache.
type live struct{ *server }

func (s live) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	s.read = append(s.read, key.Name)
	if s.unread != nil && s.unread(key.Name) != nil {
		return s.unread(key.Name)
	}
	if _, there, _ := s.nodes.GetByKey(key.Name); !there {
		return apierrors.NewNotFound(corev1.Resource("nodes"), key.Name)
	}
	if s.between != nil {
		s.version++
		node := s.node(key.Name)
		s.between(node)
		node.ResourceVersion = strconv.Itoa(s.version)
		if err := s.nodes.Update(node); err != nil {
			return err
		}
	}
	s.node(key.Name).DeepCopyInto(object.(*corev1.Node))
	return nil
}

// write is what becomes of a write to an object, before it is carried out.
func (s *server) write(name string) error {
	if s.fault == nil {
		return nil
	}
	return s.fault(name)
}

func (s *server) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	if err := s.write(object.GetName()); err != nil {
		return err
	}
	before, err := json.Marshal(s.node(object.GetName()))
	if err != nil {
		return err
	}
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	after, err := strategicpatch.StrategicMergePatch(before, data, corev1.Node{})
	if err != nil {
		return err
	}
	var node corev1.Node
	if err := json.Unmarshal(after, &node); err != nil {
		return err
	}
	if current := s.node(node.Name).ResourceVersion; node.ResourceVersion != current {
		return apierrors.NewConflict(corev1.Resource("nodes"), node.Name, fmt.Errorf("it is %s by now", current))
	}
	s.version++
	node.ResourceVersion = strconv.Itoa(s.version)
	node.DeepCopyInto(object.(*corev1.Node))
	if s.published.IsZero() {
		s.written = append(s.written, node.Name)
	}
	if grant, err := protocol.ParseGrant(node.Annotations); err == nil && grant != nil && grant.State == protocol.GrantActive {
		s.published = time.Now()
	}
	return s.nodes.Update(&node)
}

func (s *server) Status() client.SubResourceWriter { return serverStatus{server: s} }

type serverStatus struct {
	client.SubResourceWriter

	server *server
}

func (w serverStatus) Patch(ctx context.Context, object client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return w.server.Patch(ctx, object, patch)
}

func (w serverStatus) Update(_ context.Context, object client.Object, _ ...client.SubResourceUpdateOption) error {
	if err := w.server.write(object.GetName()); err != nil {
		return err
	}
	written := &w.server.policy
	if object.GetName() != workers {
		written = &w.server.holder
	}
	*written = object.(*v1alpha1.RebootPolicy).DeepCopy()
	return nil
}
