package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/controllers/plan/record"
	"github.com/reboot-operator/reboot-operator/internal/message"
	"github.com/reboot-operator/reboot-operator/kubectl-reboot/doctor"
)

func doctorCommand(s *Session) *cobra.Command {
	var o output
	cmd := &cobra.Command{
		Use:   "doctor [NODE]",
		Short: "Find what is wrong with the installation, and how to fix it",
		Long: `Find what is wrong with the installation, and print the command that fixes it or
shows more. It checks the versions of the API server, the manager and the
agents, their permissions, other programs that reboot nodes, update engines,
policies, windows, PodDisruptionBudgets, gates and clocks. With a node, it shows
what concerns that node.

It writes nothing. The exit code is 1 if there is a problem or a check failed to
run, and 0 if there are only warnings. ClusterRole reboot-operator-doctor gives
the permissions for all checks.`,
		Example: `  kubectl reboot doctor
  kubectl reboot doctor n4
  kubectl reboot doctor -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeNames(1, s.nodeNames),
		RunE: func(cmd *cobra.Command, args []string) error {
			s.rights = "ClusterRole reboot-operator-doctor gives the rights for all checks"
			cluster, err := readCluster(cmd.Context(), s, bare(nodeKinds, args...)...)
			if err != nil {
				return err
			}
			report := doctor.Examine(cluster)
			if len(args) > 0 {
				name := bare(nodeKinds, args[0])[0]
				if node, _ := cluster.Fleet.Node(name); node == nil {
					return fmt.Errorf("node %q not found", name)
				}
				report = report.About(name)
			}
			if err := s.print(o, report, func() []string { return report.Lines(s.look(o)) }); err != nil {
				return err
			}
			if bad := report.Bad(); bad > 0 {
				return errors.New(message.Count(bad, "problem", "problems"))
			}
			return nil
		},
	}
	o.bind(cmd, asJSON, asYAML)
	return cmd
}

// readCluster reads everything that the doctor examines. It fails if nodes or policies cannot be
// read. Everything else that cannot be read becomes a finding. It looks at the pods of the named
// node, or of the first nodes that need a reboot.
func readCluster(ctx context.Context, s *Session, nodes ...string) (doctor.Cluster, error) {
	f, err := s.fleet(ctx)
	if err != nil {
		return doctor.Cluster{}, err
	}
	c, err := s.client()
	if err != nil {
		return doctor.Cluster{}, err
	}
	cluster := doctor.Cluster{Fleet: f, Unread: map[doctor.Check]error{}}
	looks := slices.DeleteFunc(slices.Clone(f.Views()), func(n *record.Node) bool { return len(nodes) > 0 && !slices.Contains(nodes, n.Name) })
	if cluster.Fleet, err = lookAtPods(ctx, s, f, looks...); err != nil {
		cluster.Unread[doctor.Budgets] = err
	}
	list := func(into client.ObjectList, noun string, checks []doctor.Check, options ...client.ListOption) {
		if err := c.List(ctx, into, options...); err != nil {
			for _, check := range checks {
				cluster.Unread[check] = fmt.Errorf("listing %s: %w", noun, err)
			}
		}
	}
	var leases coordinationv1.LeaseList // read first, because kubelets renew them and they are compared with the time of the fleet
	list(&leases, "the kubelets' Leases", []doctor.Check{doctor.Clocks}, client.InNamespace(corev1.NamespaceNodeLease))
	cluster.Leases = leases.Items
	var sets appsv1.DaemonSetList
	list(&sets, "DaemonSets", []doctor.Check{doctor.Agents, doctor.Rights, doctor.Operators})
	var deployments appsv1.DeploymentList
	list(&deployments, "Deployments", []doctor.Check{doctor.Manager, doctor.Rights, doctor.Operators})
	cluster.DaemonSets, cluster.Deployments = sets.Items, deployments.Items
	if agent := cluster.Agent(); agent != nil {
		var pods corev1.PodList
		list(&pods, "the agents' pods", []doctor.Check{doctor.Agents}, client.InNamespace(agent.Namespace), client.MatchingLabels(agent.Spec.Selector.MatchLabels))
		cluster.AgentPods = pods.Items
	}
	var budgets policyv1.PodDisruptionBudgetList
	list(&budgets, "PodDisruptionBudgets", []doctor.Check{doctor.Budgets})
	cluster.Budgets = budgets.Items
	var unsent corev1.EventList // about a Node or policy, they are in this namespace
	list(&unsent, "events", []doctor.Check{doctor.Policies}, client.InNamespace(corev1.NamespaceDefault), client.MatchingFields{
		"reason": v1alpha1.EventNotificationFailed, "involvedObject.kind": "RebootPolicy",
	})
	cluster.Unsent = unsent.Items
	if cluster.Schema, err = readSchema(ctx, c); err != nil {
		cluster.Unread[doctor.Version] = err
	}
	readRights(ctx, c, &cluster)
	if err := readVersion(s, &cluster); err != nil {
		cluster.Unread[doctor.Version], cluster.Unread[doctor.Clocks] = err, err
	}
	return cluster, nil
}

// readSchema reads the schema of RebootPolicy, or nil if the cluster serves another version.
func readSchema(ctx context.Context, c client.Client) (map[string]any, error) {
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(definitions)
	if err := c.Get(ctx, client.ObjectKey{Name: "rebootpolicies." + v1alpha1.GroupVersion.Group}, definition); err != nil {
		return nil, fmt.Errorf("reading the CustomResourceDefinition: %w", err)
	}
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions") // the API server has validated it
	for _, version := range versions {
		if v, _ := version.(map[string]any); v["name"] == v1alpha1.GroupVersion.Version {
			schema, _, err := unstructured.NestedMap(v, "schema", "openAPIV3Schema")
			return schema, err
		}
	}
	return nil, nil
}

// readRights checks the permissions of the operator's ServiceAccounts.
func readRights(ctx context.Context, c client.Client, cluster *doctor.Cluster) {
	for _, right := range cluster.NeededRights() {
		resource, sub, _ := strings.Cut(right.Resource, "/")
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:   "system:serviceaccount:" + right.Namespace + ":" + right.Account,
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + right.Namespace, "system:authenticated"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: right.Verb, Group: right.Group, Version: "*", Resource: resource, Subresource: sub, Name: right.Name, Namespace: right.In,
			},
		}}
		if err := c.Create(ctx, review); err != nil {
			cluster.Unread[doctor.Rights] = fmt.Errorf("checking the permissions of the ServiceAccounts: %w", err)
			return
		}
		if !review.Status.Allowed {
			cluster.Missing = append(cluster.Missing, right)
		}
	}
}

// readVersion reads the version of the API server, and its clock from the Date header.
func readVersion(s *Session, cluster *doctor.Cluster) error {
	config, err := s.restConfig()
	if err != nil {
		return err
	}
	var served time.Time
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil {
				served, _ = http.ParseTime(response.Header.Get("Date")) // zero if unknown
			}
			return response, err
		})
	})
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	asked := s.Clock.Now()
	version, err := d.ServerVersion()
	if err != nil {
		return fmt.Errorf("reading the version of the API server: %w", err)
	}
	digits := func(text string) int {
		n, _ := strconv.Atoi(strings.TrimRight(text, "+")) // 0 if unknown
		return n
	}
	if cluster.Major, cluster.Minor = digits(version.Major), digits(version.Minor); cluster.Major == 0 {
		cluster.Unread[doctor.Version] = fmt.Errorf("the API server has version %q.%q", version.Major, version.Minor)
	}
	if served.IsZero() {
		cluster.Unread[doctor.Clocks] = errors.New("the API server's answer has no date to compare with")
		return nil
	}
	cluster.ServerTime = served.Add(cluster.Fleet.Now.Sub(asked))
	return nil
}
