package reboot

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const (
	// QPS and Burst limit an agent, which writes a few times per reboot. The drain itself limits evictions: it has few requests under
	// way at once. The limits of drains are for errors only: emptying a node of 250 pods stays below them.
	QPS, Burst           = 5, 10
	drainQPS, drainBurst = 100, 500
)

// Assembly is what an agent is made of: what its program takes from flags and the host, and what a harness replaces.
type Assembly struct {
	// Config is for the API server.
	Config *rest.Config
	// AsNode makes the agent act as its node on the Node, its pods and its events. It is itself for the rest.
	AsNode bool
	// Node is the name of the agent's own Node.
	Node string
	// Self is the agent's own pod.
	Self types.NamespacedName
	Host Host
	// Engines are the names of the update engines that report.
	Engines []string
	Metrics *Metrics
	// Clock is what the agent and its drains go by.
	Clock clock.WithTicker
	// Manager changes the options of the manager, and Controller those of the controller.
	Manager    func(*ctrl.Options)
	Controller []func(*controller.Options)
}

// New puts the agent together; the manager's Start runs it.
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
	// The drainers of policies differ in the name under which evictions are counted.
	drainer := func(policy string) *drain.Drainer {
		return &drain.Drainer{Pods: pods, Policy: budgets, Self: a.Self, Clock: a.Clock, Evictions: a.Metrics.Evicted(policy)}
	}
	r := New(Config{
		Node: a.Node, Host: a.Host, Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Policies: policies,
		Drainer: func(policy string) Drainer { return drainer(policy) }, Looker: drainer(""), Engines: a.Engines,
		Recorder: mgr.GetEventRecorder(v1alpha1.FieldOwnerAgent), Clock: a.Clock,
	})
	return mgr, r, r.SetupWithManager(ctx, mgr, a.Controller...)
}

// identities are the two an agent acts as: the node, and itself.
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
