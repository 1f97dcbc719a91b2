package controllers

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/agentset"
	"github.com/reboot-operator/reboot-operator/controllers/gate"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/controllers/reading"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/internal/lifecycle"
)

const (
	leaseName     = "reboot-operator-manager"
	leaseDuration = 15 * time.Second
	renewDeadline = 10 * time.Second
	retryPeriod   = 2 * time.Second

	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// Options are the manager's flags.
type Options struct {
	LeaderElect   bool
	MetricsAddr   string
	MetricsSecure bool
	ProbeAddr     string
	Namespace     string
	// ManageAgents makes the manager create the agents' DaemonSet with AgentImage. AgentArgs are
	// appended to the arguments of the manifest.
	ManageAgents bool
	AgentImage   string
	AgentArgs    []string
	// FleetLock is the server for hosts with a FleetLock client.
	FleetLock FleetLockOptions
	// RemovePolicies makes the program remove all policies within this time and exit.
	RemovePolicies time.Duration
	// PrintVersion makes the program print its version and exit.
	PrintVersion bool
}

// Paces are delays that combine changes that are not urgent.
type Paces struct {
	// Counts is the age of a status before changes of counts alone are written. Grants, conditions
	// and windows are written at once, together with the counts.
	Counts time.Duration
	// AgentEvent is the time that an event of an agent's pod waits for others, because a rollout of
	// agents replaces thousands.
	AgentEvent time.Duration
	// AgentList is the time after which a missing first list of the agents' pods is reported.
	AgentList time.Duration
}

// DefaultPaces are the delays in production.
var DefaultPaces = Paces{Counts: 15 * time.Second, AgentEvent: 5 * time.Second, AgentList: 15 * time.Second}

// Bind registers the flags with their defaults.
func (o *Options) Bind(flags *flag.FlagSet) {
	flags.BoolVar(&o.LeaderElect, "leader-elect", true, "Elect a leader with a Lease; only the leader acts.")
	flags.StringVar(&o.MetricsAddr, "metrics-bind-address", ":8443", "Address at which metrics are served; 0 turns them off.")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", true, "Serve metrics over TLS, with authentication and authorization.")
	flags.StringVar(&o.ProbeAddr, "health-probe-bind-address", ":8081", "Address at which /healthz and /readyz are served; 0 turns them off.")
	flags.StringVar(&o.Namespace, "namespace", "", "Namespace of the Lease and of the agents (default: the pod's).")
	flags.BoolVar(&o.ManageAgents, "manage-agents", false, "Manage the agents' DaemonSet: create it, update it, and delete it with the last policy.")
	flags.StringVar(&o.AgentImage, "agent-image", "", "Image that the agents run, with --manage-agents.")
	flags.Func("agent-arg", "Additional argument for the agents, with --manage-agents; may be given several times.", func(arg string) error {
		o.AgentArgs = append(o.AgentArgs, arg)
		return nil
	})
	flags.DurationVar(&o.RemovePolicies, "remove-policies", 0, "Instead of managing, delete all RebootPolicies, wait for at most this long until the managers have ended granted reboots, and exit. For uninstalling.")
	o.FleetLock.bind(flags)
	flags.BoolVar(&o.PrintVersion, "version", false, "Print the version and exit.")
}

// Complete sets defaults that depend on the environment. It returns an error of one sentence for
// options that cannot work.
func (o *Options) Complete() error {
	if o.Namespace == "" {
		o.Namespace = podNamespace()
	}
	if o.RemovePolicies > 0 {
		return nil
	}
	if o.LeaderElect && o.Namespace == "" {
		return errors.New("--namespace is needed outside a pod: it holds the Lease for --leader-elect")
	}
	return errors.Join(o.checkAgents(), o.FleetLock.check())
}

func (o *Options) checkAgents() error {
	switch {
	case !o.ManageAgents && o.AgentImage != "":
		return errors.New("--agent-image has no effect without --manage-agents: the agents' DaemonSet names its image")
	case !o.ManageAgents && len(o.AgentArgs) > 0:
		return errors.New("--agent-arg has no effect without --manage-agents: the agents' DaemonSet has its arguments")
	case o.ManageAgents && o.AgentImage == "":
		return errors.New("--agent-image is needed with --manage-agents: it names the image that the agents run")
	case o.ManageAgents && o.Namespace == "":
		return errors.New("--namespace is needed outside a pod: it holds the agents' DaemonSet for --manage-agents")
	}
	return nil
}

// podNamespace returns the namespace of the pod, or an empty string outside a pod.
func podNamespace() string {
	data, _ := os.ReadFile(podNamespaceFile) // the file does not exist outside a pod
	return cmp.Or(os.Getenv("POD_NAMESPACE"), strings.TrimSpace(string(data)))
}

// Scheme knows the kinds the manager reads and writes.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the Kubernetes API: %w", err)
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("registering the API: %w", err)
	}
	return scheme, nil
}

// Manager returns the options of the manager. It caches trimmed Nodes, RebootPolicies, and with
// --manage-agents the one DaemonSet. It has leader election, probes and metrics.
func (o *Options) Manager() (ctrl.Options, error) {
	scheme, err := Scheme()
	if err != nil {
		return ctrl.Options{}, err
	}
	return ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			ReaderFailOnMissingInformer: true,
			DefaultTransform:            cache.TransformStripManagedFields(),
			ByObject:                    o.caches(),
		},
		Client:                        client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: new(true)}},
		Metrics:                       o.metrics(),
		HealthProbeBindAddress:        o.ProbeAddr,
		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              leaseName,
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 new(leaseDuration),
		RenewDeadline:                 new(renewDeadline),
		RetryPeriod:                   new(retryPeriod),
		GracefulShutdownTimeout:       new(lifecycle.ShutdownPeriod),
	}, nil
}

// SetupProbes makes a manager healthy while it runs, and ready once it has read the objects that it
// needs.
func SetupProbes(mgr ctrl.Manager, o Options) error {
	ready := readiness{Listed: make(lifecycle.Listed), cache: mgr.GetCache(), kinds: []client.Object{&corev1.Node{}, &v1alpha1.RebootPolicy{}}}
	if o.ManageAgents {
		ready.kinds = append(ready.kinds, &appsv1.DaemonSet{})
	}
	return errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("listed", ready.Checker(errNotListed)), mgr.Add(ready))
}

func (o *Options) caches() map[client.Object]cache.ByObject {
	caches := map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: snapshot.Transform()}}
	if o.FleetLock.enabled() {
		caches = map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: withIdentity}}
	}
	if o.ManageAgents {
		caches[&appsv1.DaemonSet{}] = cache.ByObject{
			Namespaces: map[string]cache.Config{o.Namespace: {}},
			Field:      fields.OneTermEqualSelector(metav1.ObjectNameField, agentset.Name),
		}
	}
	return caches
}

func (o *Options) metrics() metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.MetricsAddr}
	if o.MetricsSecure {
		options.SecureServing = true
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
		options.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS12 }}
	}
	return options
}

// SetupPolicies registers the controller of policies. Windows, back-offs and time-outs use the
// clock.
func SetupPolicies(mgr ctrl.Manager, o Options, now clock.PassiveClock) error {
	recorder := lifecycle.Recorder{EventRecorder: mgr.GetEventRecorder(v1alpha1.FieldOwnerManager)}
	counted := NewMetrics(metrics.Registry)
	notifier, err := NewNotifier(mgr, recorder, counted, o.Namespace, clock.RealClock{})
	if err != nil {
		return err
	}
	objects, err := gate.NewObjects(mgr.GetConfig())
	if err != nil {
		return err
	}
	prometheus := &gate.Prometheus{Secrets: reading.Secrets{Reader: mgr.GetAPIReader(), Namespace: o.Namespace}}
	r := &RebootPolicyReconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Recorder: recorder, Clock: now, Metrics: counted,
		Gates:    gate.NewEvaluator(prometheus, objects, clock.RealClock{}, gate.Interval),
		Notifier: notifier, AgentNamespace: o.Namespace, Paces: DefaultPaces,
		RebootInterval: record.DefaultRebootInterval,
	}
	return r.SetupWithManager(mgr, controller.Options{})
}

// errNotListed is the reason of a manager that is not ready. Only its log has the API server's
// response.
var errNotListed = errors.New("the API server has not listed Nodes, RebootPolicies or, with --manage-agents, the DaemonSet yet; see the manager's log")

// readiness is ready for good once the manager has read the objects that it needs. A manager that
// may not read them ends after a while and must not replace one that may. A standby reads them,
// too. It implements manager.Runnable.
type readiness struct {
	lifecycle.Listed

	cache cache.Cache
	// kinds are the kinds that the manager reads.
	kinds []client.Object
}

// Start returns after the first lists.
func (r readiness) Start(ctx context.Context) error {
	for _, kind := range r.kinds {
		// A kind that is not served is not an error here. The controller that watches it reports
		// that and gives up in time.
		err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
			_, err := r.cache.GetInformer(ctx, kind)
			return err == nil, nil
		})
		if err != nil {
			return nil //nolint:nilerr // the manager ends
		}
	}
	return r.Listed.Start(ctx)
}
