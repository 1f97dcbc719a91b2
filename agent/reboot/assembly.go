package reboot

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const (
	// QPS and Burst limit an agent, which writes a few times per reboot. A drain limits its
	// evictions by itself, because it has only a few requests under way at once. Its limits only
	// catch errors: draining a node with 250 pods stays below them.
	QPS, Burst           = 5, 10
	drainQPS, drainBurst = 100, 500
)

// Assembly holds the parts of an agent: what its program takes from flags and the host, and what a
// test harness replaces.
type Assembly struct {
	// Config is the configuration of the API server's client.
	Config *rest.Config
	// AsNode makes the agent act as its node for the Node, its pods and its events. For everything
	// else it acts as itself.
	AsNode bool
	// Node is the name of the agent's own Node.
	Node string
	// Self is the agent's own pod.
	Self types.NamespacedName
	Host Host
	// Engines are the names of the update engines of the host.
	Engines []string
	Metrics *Metrics
	// Clock is the clock of the agent and its drains.
	Clock clock.WithTicker
	// Manager changes the options of the manager.
	Manager func(*ctrl.Options)
}

// New builds the agent. Start of the returned manager runs it.
func (a Assembly) New(ctx context.Context) (ctrl.Manager, *Reconciler, error) {
	node, own := a.identities()
	options, err := managerOptions(a.Node)
	if err != nil {
		return nil, nil, err
	}
	a.Manager(&options)
	mgr, err := ctrl.NewManager(node, options)
	if err != nil {
		return nil, nil, fmt.Errorf("making the manager: %w", err)
	}
	policies, policiesErr := client.New(own, client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	pods, podsErr := newDrainClient(node)
	budgets, budgetsErr := newDrainClient(own)
	if err := errors.Join(policiesErr, podsErr, budgetsErr); err != nil {
		return nil, nil, fmt.Errorf("making the clients for policies, pods and PodDisruptionBudgets: %w", err)
	}
	// The drainers differ in the policy for which evictions are counted.
	drainer := func(policy string) *drain.Drainer {
		return &drain.Drainer{Pods: pods, Policy: budgets, Self: a.Self, Clock: a.Clock, Evictions: a.Metrics.evicted(policy)}
	}
	r := New(Config{
		Node: a.Node, Host: a.Host, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Policies: policies,
		Drainer: func(policy string) Drainer { return drainer(policy) }, Looker: drainer(""), Engines: a.Engines,
		Recorder: mgr.GetEventRecorder(v1alpha1.FieldOwnerAgent), Clock: a.Clock,
	})
	return mgr, r, r.SetupWithManager(ctx, mgr, controller.Options{})
}

// identities returns the client configurations of the node's identity and of the agent's own.
func (a Assembly) identities() (node, own *rest.Config) {
	own = rest.AddUserAgent(rest.CopyConfig(a.Config), v1alpha1.FieldOwnerAgent)
	own.QPS, own.Burst = QPS, Burst
	node = rest.CopyConfig(own)
	if a.AsNode {
		node.Impersonate = rest.ImpersonationConfig{UserName: "system:node:" + a.Node}
	}
	return node, own
}

func newDrainClient(config *rest.Config) (*drain.Client, error) {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = drainQPS, drainBurst
	return drain.NewClient(config)
}

// managerOptions returns the options of an agent's manager, which watches one Node and nothing
// else.
func managerOptions(node string) (ctrl.Options, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return ctrl.Options{}, fmt.Errorf("registering the kinds: %w", err)
	}
	return ctrl.Options{
		Scheme:         scheme,
		MapperProvider: kinds,
		Cache: cache.Options{
			ReaderFailOnMissingInformer: true,
			ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {
				Field: fields.OneTermEqualSelector("metadata.name", node), Transform: TrimNode,
			}},
		},
	}, nil
}

// kinds maps the kinds that an agent reads and writes. Discovery would need permissions that the
// node's identity does not have.
func kinds(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolume"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), meta.RESTScopeNamespace)
	mapper.Add(v1alpha1.GroupVersion.WithKind("RebootPolicy"), meta.RESTScopeRoot)
	return mapper, nil
}

// TrimNode is the transform of the agent's informer. It keeps the fields of the Node that the agent
// and its events need.
func TrimNode(object any) (any, error) {
	node, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	node.ManagedFields = nil
	node.Status = corev1.NodeStatus{Conditions: node.Status.Conditions, VolumesInUse: node.Status.VolumesInUse}
	return node, nil
}

// ofInterest drops updates that cannot change a decision of the agent, above all the kubelet's
// heartbeats. Changes of the agent's own keys pass, so that removed keys are restored.
func ofInterest() builder.Predicates {
	return builder.WithPredicates(predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*corev1.Node)
		after, ok2 := e.ObjectNew.(*corev1.Node)
		return !ok || !ok2 || interesting(before, after)
	}})
}

func interesting(before, after *corev1.Node) bool {
	return !equality.Semantic.DeepEqual(viewOf(before), viewOf(after))
}

// view holds the fields of a Node on which decisions depend.
type view struct {
	Unschedulable       bool
	Annotations, Labels map[string]string
	Conditions          []corev1.NodeCondition
	VolumesInUse        []corev1.UniqueVolumeName
}

func viewOf(node *corev1.Node) view {
	v := view{
		Unschedulable: node.Spec.Unschedulable,
		Annotations:   ours(node.Annotations),
		Labels:        ours(node.Labels),
		VolumesInUse:  slices.Sorted(slices.Values(node.Status.VolumesInUse)), // older kubelets do not sort them
	}
	decisive := []corev1.NodeConditionType{
		v1alpha1.NodeRebootRequired, corev1.NodeDrainInProgress, corev1.NodeDrained, corev1.NodeMaintenanceInProgress,
	}
	needs, _ := protocol.ParseNodeConditions(node.Annotations)
	for _, c := range node.Status.Conditions {
		isNeed := slices.ContainsFunc(needs, func(need v1alpha1.NodeConditionNeed) bool { return need.Type == c.Type })
		if isNeed || slices.Contains(decisive, c.Type) {
			c.LastHeartbeatTime = metav1.Time{}
			v.Conditions = append(v.Conditions, c)
		}
	}
	return v
}

// ours returns the values whose keys belong to this project.
func ours(all map[string]string) map[string]string {
	ours := map[string]string{}
	for key, value := range all {
		if strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/") {
			ours[key] = value
		}
	}
	return ours
}
