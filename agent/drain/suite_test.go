package drain_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/reboot-operator/reboot-operator/agent/drain"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

// agentUser is the user of the agent's ServiceAccount, with the permissions of config/rbac.
const agentUser = "system:serviceaccount:reboot-operator-system:reboot-operator-agent"

// nodeSelectors labels specs in which a node may list only its own pods, for Kubernetes 1.32 and
// later (KEP-4601, AuthorizeNodeWithSelectors).
var nodeSelectors = Label("node-selectors")

var (
	env   *embedded.Cluster
	admin kubernetes.Interface
)

func TestDrain(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Drain")
}

var _ = BeforeSuite(func(ctx context.Context) {
	env = embedded.StartServerFor(GinkgoT())
	admin = kubernetes.NewForConfigOrDie(env.Config())
	installAgentRole(ctx)
})

// installAgentRole binds the agent's user to the ClusterRole that ships.
func installAgentRole(ctx context.Context) {
	file, err := os.ReadFile(filepath.Join(testenv.Root(), "config", "rbac", "agent.yaml"))
	Expect(err).NotTo(HaveOccurred())
	for document := range strings.SplitSeq(string(file), "\n---\n") {
		var kind metav1.TypeMeta
		Expect(yaml.Unmarshal([]byte(document), &kind)).To(Succeed())
		switch kind.Kind {
		case "ClusterRole":
			role := &rbacv1.ClusterRole{}
			Expect(yaml.Unmarshal([]byte(document), role)).To(Succeed())
			_, err = admin.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		case "ClusterRoleBinding":
			binding := &rbacv1.ClusterRoleBinding{}
			Expect(yaml.Unmarshal([]byte(document), binding)).To(Succeed())
			_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
		}
	}
}

// as returns a client that impersonates a user, with its requests going through the wire w.
func as(w *wire.Wire, user string, groups ...string) *drain.Client {
	GinkgoHelper()
	config := impersonating(user, groups...)
	config.Wrap(w.Wrap)
	client, err := drain.NewClient(config)
	Expect(err).NotTo(HaveOccurred())
	return client
}

// asNode returns a client with a kubelet's identity, so that the Node authorizer and
// NodeRestriction limit it.
func asNode(w *wire.Wire, node string) *drain.Client {
	GinkgoHelper()
	return as(w, "system:node:"+node, "system:nodes")
}

func impersonating(user string, groups ...string) *rest.Config {
	config := env.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:authenticated")}
	return config
}
