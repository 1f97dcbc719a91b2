package main

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	configagent "github.com/reboot-operator/reboot-operator/config/agent"
	"github.com/reboot-operator/reboot-operator/hack/embedded"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// httpTimeout is the time in which HTTP/2 notices a dead connection with the defaults of client-go.
const httpTimeout = 45 * time.Second

// TestReadiness_WithinAMinute shows that the kubelet reports the agent as not Ready within a
// minute, however a connection is lost.
func TestReadiness_WithinAMinute(t *testing.T) {
	var set appsv1.DaemonSet
	if err := yaml.Unmarshal([]byte(configagent.Manifest()), &set); err != nil {
		t.Fatal(err)
	}
	probe := set.Spec.Template.Spec.Containers[0].ReadinessProbe
	probing := time.Duration(probe.PeriodSeconds*probe.FailureThreshold) * time.Second
	for name, noticed := range map[string]time.Duration{
		"rights are checked when a watch begins": renewAfter + renewAfter/3,
		"a connection is cut without a reset":    httpTimeout,
	} {
		if total := noticed + patience + probing; total > time.Minute {
			t.Errorf("%s: shown after up to %s", name, total)
		}
	}
}

func TestLink(t *testing.T) {
	now := testingclock.NewFakePassiveClock(time.Now())
	after := func(d time.Duration) { now.SetTime(now.Now().Add(d)) }
	link := newReadiness(now, renewAfter).node
	expect := func(ready bool, when string) {
		t.Helper()
		if err := link.check(nil); (err == nil) != ready {
			t.Errorf("%s: %v", when, err)
		}
	}
	expect(false, "never open")
	after(time.Hour)
	first := link.opened()
	expect(true, "open")
	first()
	expect(true, "just closed")
	after(patience - 1)
	expect(true, "closed for a moment")
	after(1)
	expect(false, "closed for too long")
	first()
	second := link.opened()
	expect(true, "open again; what was closed is closed once")
	third := link.opened()
	second()
	after(time.Hour)
	expect(true, "one of two is open: the end of the first came late")
	third()
	after(time.Minute)
	expect(false, "both closed")
}

var _ = Describe("The agent's probes", func() {
	It("report that it is alive, and not ready before it has read its Node", func(ctx SpecContext) {
		const nodes = "/api/v1/nodes"
		m := newMachine(ctx, patient)
		address := probedAt(ctx)
		m.requests.forbid(nodes, 0)
		DeferCleanup(m.requests.forbid, "", 0) // The agent stops only after it has read its Node.
		m.start(ctx, "--health-probe-bind-address="+address)
		Eventually(func() []string { return m.requests.of(nodes) }).ShouldNot(BeEmpty(), "a list that was refused")
		Eventually(testenv.Probe).WithArguments(ctx, address, "/healthz").Should(Equal("200 ok"))
		Expect(testenv.Probe(ctx, address, "/readyz")).To(HavePrefix("500 [-]"))
		Expect(testenv.Probe(ctx, address, "/readyz/node-listed")).To(And(HavePrefix("500"), ContainSubstring(errNotListed.Error())))

		By("being ready as soon as it may read it")
		m.requests.forbid("", 0)
		Eventually(testenv.Probe).WithArguments(ctx, address, "/readyz").Should(Equal("200 ok"))
		m.shows(ctx, needOf, Equal("False UpToDate"))
	})

	It("report that it is not ready without its permissions, and ready when it has them again", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		m.hurried, m.tune = true, func(config *rest.Config) { config.Impersonate.UserName = m.Name }
		bind := grantAgent(ctx, m.Name)
		binding := bind()
		address := probedAt(ctx)
		m.start(ctx, "--health-probe-bind-address="+address, "--identity="+identityServiceAccount)
		Eventually(testenv.Probe).WithArguments(ctx, address, "/readyz").Should(Equal("200 ok"))
		watches := func() int { return len(m.requests.Matching(http.MethodGet, "watch=true")) }
		begun, stayed := watches(), true
		Eventually(func() int {
			stayed = stayed && testenv.Probe(ctx, address, "/readyz") == "200 ok"
			return watches()
		}).Should(BeNumerically(">", begun+2))
		Expect(stayed).To(BeTrue(), "it is ready whenever the watch is renewed")
		m.Clock.Jump(patience)
		Eventually(testenv.Probe).WithArguments(ctx, address, "/readyz").Should(Equal("200 ok"), "its watch is not the first one")

		Expect(api.Delete(ctx, binding)).To(Succeed())
		Eventually(m.probesLater).WithArguments(ctx, address, "/readyz/node-watched").Should(
			And(HavePrefix("500"), ContainSubstring("no connection to the API server")))
		Expect(testenv.Probe(ctx, address, "/healthz")).To(Equal("200 ok"))
		bind()
		Eventually(testenv.Probe, "2m").WithArguments(ctx, address, "/readyz").Should(Equal("200 ok"))
	})

	It("report that it is not ready while the API server is down", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		m.hurried = true
		address := probedAt(ctx)
		m.start(ctx, "--health-probe-bind-address="+address)
		Eventually(testenv.Probe).WithArguments(ctx, address, "/readyz").Should(Equal("200 ok"))
		m.requests.Cut()
		Eventually(m.probesLater).WithArguments(ctx, address, "/readyz").Should(HavePrefix("500"))
		m.requests.Restore()
		Eventually(testenv.Probe, "2m").WithArguments(ctx, address, "/readyz").Should(Equal("200 ok"))
	})

	It("report that it is not ready while the host's bus is down", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		m.hurried = true
		address := probedAt(ctx)
		m.start(ctx, "--health-probe-bind-address="+address)
		Eventually(testenv.Probe).WithArguments(ctx, address, "/readyz").Should(Equal("200 ok"))
		Expect(m.Bus.Halt()).To(Succeed())
		Eventually(m.probesLater).WithArguments(ctx, address, "/readyz/bus").Should(
			And(HavePrefix("500"), ContainSubstring("no connection to the host's system bus")))
		Expect(m.Bus.Restart()).To(Succeed())
		Eventually(testenv.Probe, "2m").WithArguments(ctx, address, "/readyz").Should(Equal("200 ok"))
	})
})

// probesLater returns the result of a probe once a lost link has exceeded patience.
func (m *machine) probesLater(ctx context.Context, address, path string) string {
	m.Clock.Jump(patience)
	return testenv.Probe(ctx, address, path)
}

// probedAt returns an address for an agent's probes.
func probedAt(ctx context.Context) string {
	GinkgoHelper()
	port, err := embedded.FreePort(ctx)
	Expect(err).NotTo(HaveOccurred())
	return fmt.Sprintf("127.0.0.1:%d", port)
}

// grantAgent creates a ClusterRole with an agent's permissions for Nodes, and returns a function
// that binds a user to it.
func grantAgent(ctx context.Context, user string) (bind func() *rbacv1.ClusterRoleBinding) {
	GinkgoHelper()
	named := metav1.ObjectMeta{Name: "agent-" + user}
	role := &rbacv1.ClusterRole{ObjectMeta: named, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"nodes", "nodes/status"}, Verbs: []string{"get", "list", "watch", "patch"}},
	}}
	Expect(api.Create(ctx, role)).To(Succeed())
	return func() *rbacv1.ClusterRoleBinding {
		GinkgoHelper()
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: named,
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}
		Expect(api.Create(ctx, binding)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(client.IgnoreNotFound(api.Delete(ctx, binding))).To(Succeed())
		})
		return binding
	}
}
