package controllers

import (
	"cmp"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
)

const (
	leaseName      = "reboot-operator-manager"
	leaseDuration  = 15 * time.Second
	renewDeadline  = 10 * time.Second
	retryPeriod    = 2 * time.Second
	shutdownPeriod = 4 * time.Second

	podNamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// Options are the manager's flags.
type Options struct {
	LeaderElect   bool
	MetricsAddr   string
	MetricsSecure bool
	ProbeAddr     string
	Namespace     string
}

// Bind registers the flags with their defaults.
func (o *Options) Bind(flags *flag.FlagSet) {
	flags.BoolVar(&o.LeaderElect, "leader-elect", true, "Let one of several replicas act, by a Lease.")
	flags.StringVar(&o.MetricsAddr, "metrics-bind-address", ":8443", "Where metrics are served; 0 turns them off.")
	flags.BoolVar(&o.MetricsSecure, "metrics-secure", true, "Serve metrics by TLS, to users who may read them.")
	flags.StringVar(&o.ProbeAddr, "health-probe-bind-address", ":8081", "Where /healthz and /readyz are served; 0 turns them off.")
	flags.StringVar(&o.Namespace, "namespace", "", "Namespace of the Lease (default: the pod's).")
}

// Complete fills in what follows from the surroundings, and refuses what cannot work with one sentence.
func (o *Options) Complete() error {
	if o.Namespace == "" {
		o.Namespace = podNamespace()
	}
	if o.LeaderElect && o.Namespace == "" {
		return errors.New("--namespace is needed outside a pod: it holds the Lease for --leader-elect")
	}
	return nil
}

func podNamespace() string {
	data, err := os.ReadFile(podNamespaceFile)
	if err != nil {
		return os.Getenv("POD_NAMESPACE")
	}
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

// NewManager makes the manager: caches of Nodes (trimmed) and RebootPolicies and of nothing else, one leader, probes and
// metrics.
func NewManager(config *rest.Config, o Options) (ctrl.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme,
		Cache: cache.Options{
			ReaderFailOnMissingInformer: true,
			DefaultTransform:            cache.TransformStripManagedFields(),
			ByObject:                    map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: snapshot.Transform}},
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
		GracefulShutdownTimeout:       new(shutdownPeriod),
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	return mgr, errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping))
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
