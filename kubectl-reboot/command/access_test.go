package command_test

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/fleettest"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// applyUserRoles creates the roles of config/rbac/users.yaml.
func applyUserRoles() {
	GinkgoHelper()
	file, err := os.Open(filepath.Join(testenv.Root(), "config", "rbac", "users.yaml"))
	Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		var role rbacv1.ClusterRole
		if decoder.Decode(&role) != nil {
			return
		}
		Expect(client.IgnoreAlreadyExists(api.Create(context.Background(), &role))).To(Succeed())
	}
}

// as runs the command with the kubeconfig of a new user, who has the role unless it is empty.
func as(name, role string) func(*call) {
	GinkgoHelper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name}}
	Expect(api.Create(context.Background(), account)).To(Succeed())
	if role != "" {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: name}},
		}
		Expect(api.Create(context.Background(), binding)).To(Succeed())
	}
	clients, err := kubernetes.NewForConfig(env.Config())
	Expect(err).NotTo(HaveOccurred())
	token, err := clients.CoreV1().ServiceAccounts(account.Namespace).CreateToken(context.Background(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	path := kubeconfig(clientcmdapi.AuthInfo{Token: token.Status.Token})
	return func(c *call) { c.kubeconfig = path }
}

var _ = Describe("Rights", Ordered, func() {
	var p *pool
	BeforeAll(func() {
		applyUserRoles()
		p = newPool(1, paused)
	})
	looks := func() [][]string {
		return [][]string{{"status"}, {"explain", p.nodes[0]}, {"windows"}, {"forecast"}, {"history", p.nodes[0]}, {"__complete", "explain", ""}}
	}
	acts := func() [][]string {
		return [][]string{
			{"request", p.nodes[0], "--reason=why"},
			{"pause", "node/" + p.nodes[0]},
			{"pause", "rbp/" + p.policy, "--until=2h"},
			{"pause", "-l", fleettest.PoolLabel + "=" + p.policy, "--reason=why"},
			{"resume", p.policy},
		}
	}
	try := func(user func(*call), calls [][]string, want bool, sentence string) {
		GinkgoHelper()
		for _, args := range calls {
			_, stderr, err := run(args, user)
			Expect(err == nil).To(Equal(want), "%v: %s", args, stderr)
			if !want {
				Expect(stderr).To(ContainSubstring(sentence), "%v", args)
			}
		}
	}

	It("of a viewer are enough for reading, and only for that", func() {
		viewer := as("viewer", "reboot-operator-fleet-viewer")
		try(viewer, looks(), true, "")
		try(viewer, acts(), false, "reboot-operator-fleet-operator also writing")
		stdout, _, _ := run([]string{"status"}, viewer)
		Expect(stdout).NotTo(ContainSubstring("whether a manager runs"))
	})

	It("of a user who may not read the manager's Lease are enough for reading, and the first line says what is unknown", func() {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "no-leases"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"", v1alpha1.GroupVersion.Group}, Resources: []string{"nodes", "rebootpolicies"}, Verbs: []string{"get", "list", "watch"}},
		}}
		Expect(api.Create(context.Background(), role)).To(Succeed())
		stdout, stderr, err := run([]string{"status"}, as("no-leases", role.Name))
		Expect(err).NotTo(HaveOccurred(), stderr)
		Expect(stdout).To(HavePrefix("! it is unknown whether a manager runs: you may not list Lease reboot-operator-manager; ClusterRole reboot-operator-fleet-viewer allows it\n\n"))
	})

	It("of an operator are enough for every command", func() {
		operator := as("operator", "reboot-operator-fleet-operator")
		try(operator, looks(), true, "")
		try(operator, append(acts(), []string{"resume", p.nodes[0]}), true, "")
	})

	It("of a user who may not read policies are not enough to wait, and nothing is written", func() {
		nodes := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "nodes-only"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"get", "list", "watch", "patch"}},
		}}
		Expect(api.Create(context.Background(), nodes)).To(Succeed())
		user, asks := as("nodes-only", nodes.Name), newPool(1, paused)
		request := []string{"request", asks.nodes[0], "--reason=why"}
		try(user, [][]string{append(request, "--wait", "--timeout=5s")}, false, "reboot-operator-fleet-viewer allows reading")
		Expect(node(asks.nodes[0]).Annotations).NotTo(HaveKey(v1alpha1.AnnotationRebootRequested))
		try(user, [][]string{request}, true, "")
	})

	It("of a user whose token has expired do not suffice, and the message says what to do", func() {
		path := kubeconfig(clientcmdapi.AuthInfo{Token: "expired"})
		expired := func(c *call) { c.kubeconfig = path }
		try(expired, append(looks()[:5], acts()...), false, "Unauthorized; the API server does not accept your credentials: log in to the cluster again")
	})

	It("of a user without a role do not suffice, and the message names the missing role", func() {
		nobody := as("nobody", "")
		try(nobody, [][]string{{"status"}, {"explain", p.nodes[0]}, {"windows"}}, false, "reboot-operator-fleet-viewer allows reading")
		try(nobody, acts(), false, "is forbidden")
		try(nobody, [][]string{{"convert", "kured"}}, false, "reboot-operator-doctor lets you list them")
		try(nobody, [][]string{{"doctor"}}, false, "ClusterRole reboot-operator-doctor gives the rights for all checks")
	})
})
