package command

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/reading"
	"github.com/reboot-operator/reboot-operator/controllers/snapshot"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/fleet"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/terminal"
)

// fieldOwner is the plugin's name in managedFields.
const fieldOwner = "kubectl-reboot"

// definitions is the kind of the definition of RebootPolicy.
var definitions = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// kinds registers everything that the plugin reads and writes, so that it needs no discovery
// requests.
func kinds() (*runtime.Scheme, meta.RESTMapper, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme),
		coordinationv1.AddToScheme(scheme), policyv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, nil, fmt.Errorf("registering the API: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Node"), meta.RESTScopeRoot)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"), meta.RESTScopeRoot)
	for _, kind := range []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("DaemonSet"), appsv1.SchemeGroupVersion.WithKind("Deployment"), corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("Event"),
		coordinationv1.SchemeGroupVersion.WithKind("Lease"), policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	mapper.Add(v1alpha1.GroupVersion.WithKind("RebootPolicy"), meta.RESTScopeRoot)
	mapper.Add(definitions, meta.RESTScopeRoot)
	return scheme, mapper, nil
}

// restConfig returns the client configuration for the chosen cluster. Warnings of the API server go
// to standard error, as in kubectl. It sets no client-side rate limit: at the default of five
// requests per second, writes to thousands of nodes would take too long.
func (s *Session) restConfig() (*rest.Config, error) {
	if err := s.hasKubeconfig(); err != nil {
		return nil, err
	}
	config, err := s.Config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.QPS = -1
	config.UserAgent = "kubectl-reboot/" + s.Version
	config.WarningHandler = rest.NewWarningWriter(s.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	return config, nil
}

// hasKubeconfig fails without a kubeconfig. Otherwise client-go would try localhost:8080, and
// its error would be misleading.
func (s *Session) hasKubeconfig() error {
	if server := s.Config.APIServer; server != nil && *server != "" {
		return nil
	}
	raw, err := s.Config.ToRawKubeConfigLoader().RawConfig()
	if err != nil || !clientcmdapi.IsConfigEmpty(&raw) {
		return nil //nolint:nilerr // ToRESTConfig reports what is wrong with it.
	}
	if _, err := rest.InClusterConfig(); err == nil {
		return nil
	}
	return errors.New("no kubeconfig found: set KUBECONFIG, or use --kubeconfig")
}

// clusterFlags returns the flags that select the cluster.
func (s *Session) clusterFlags() string {
	var flags []string
	for _, f := range []struct {
		name  string
		value *string
	}{{"kubeconfig", s.Config.KubeConfig}, {"context", s.Config.Context}, {"cluster", s.Config.ClusterName}} {
		if f.value != nil && *f.value != "" {
			flags = append(flags, "--"+f.name+"="+quoted(*f.value))
		}
	}
	return strings.Join(flags, " ")
}

// command formats a kubectl command inside a sentence.
func (s *Session) command(format string, args ...any) string {
	return terminal.Look{Flags: s.clusterFlags()}.Command(fmt.Sprintf(format, args...))
}

var plain = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// quoted quotes a word for the shell if necessary.
func quoted(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func (s *Session) client() (client.Client, error) {
	config, err := s.restConfig()
	if err != nil {
		return nil, err
	}
	scheme, mapper, err := kinds()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return c, nil
}

// fleet reads what the manager decides from, plus what only people look at: what kubelets report
// about their hosts, and when reboots were requested.
func (s *Session) fleet(ctx context.Context) (fleet.Fleet, error) {
	c, err := s.client()
	if err != nil {
		return fleet.Fleet{}, err
	}
	policies, err := reading.Policies(ctx, c)
	if err != nil {
		return fleet.Fleet{}, err
	}
	var nodes []corev1.Node
	err = reading.EachNode(ctx, c, func(n *corev1.Node) {
		trimmed := snapshot.Trim(n, fleet.Shown...)
		trimmed.Status.NodeInfo = n.Status.NodeInfo
		if _, requested := v1alpha1.RebootRequested(n); requested {
			trimmed.ManagedFields = n.ManagedFields // shows when the request was written
		}
		nodes = append(nodes, *trimmed)
	})
	if err != nil {
		return fleet.Fleet{}, err
	}
	f := fleet.New(policies, nodes, s.Clock.Now())
	f.Manager = readManager(ctx, c)
	s.manager = f.Manager
	return f, nil
}

// readManager reads the Lease of the manager in any namespace.
func readManager(ctx context.Context, c client.Client) fleet.Manager {
	var leases coordinationv1.LeaseList
	err := c.List(ctx, &leases, client.MatchingFields{metav1.ObjectNameField: fleet.ManagerLease})
	if apierrors.IsForbidden(err) {
		err = fmt.Errorf("you may not list Lease %s; ClusterRole reboot-operator-fleet-viewer allows it", fleet.ManagerLease)
	}
	return fleet.ManagerOf(leases.Items, err)
}

// policies reads all policies.
func (s *Session) policies(ctx context.Context) ([]v1alpha1.RebootPolicy, error) {
	c, err := s.client()
	if err != nil {
		return nil, err
	}
	s.manager = readManager(ctx, c)
	return reading.Policies(ctx, c)
}

// fleetOf reads the fleet, and returns the names of the policies in the arguments. It fails if one
// does not exist.
func (s *Session) fleetOf(ctx context.Context, arguments []string) (f fleet.Fleet, names []string, err error) {
	if f, err = s.fleet(ctx); err != nil {
		return f, nil, err
	}
	names = bare(policyKinds, arguments...)
	_, err = choose(f.Policies, names)
	return f, names, err
}
