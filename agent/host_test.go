package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/reboot-operator/reboot-operator/agent/reboot"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
	played "github.com/reboot-operator/reboot-operator/hack/machine"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
	"github.com/reboot-operator/reboot-operator/hack/wire"
)

// machine is a host with a real bus, and its Node at the real API server. Its clock stands still
// until the spec advances it. The spec acts as the manager.
type machine struct {
	*played.Host

	looks  int
	policy *v1alpha1.RebootPolicy

	requests requests
	// tune changes how the agent reaches the API server.
	tune func(*rest.Config)
	// hurried renews the agent's watch every two seconds.
	hurried bool
	// registry has the metrics of the last agent.
	registry *prometheus.Registry

	// life is held while the spec or a reboot starts or ends the agent.
	life sync.Mutex
	stop func()
}

var machines atomic.Int64

// newMachine returns a host that is up, with a Node that is Ready and a policy with a spec. The
// agent is not running yet.
func newMachine(ctx context.Context, spec v1alpha1.RebootPolicySpec) *machine {
	GinkgoHelper()
	name := fmt.Sprintf("n%d", machines.Add(1))
	m := &machine{Host: played.NewHost(GinkgoT(), name, "4459.2.0 (odd)"), stop: func() {}, tune: func(*rest.Config) {}}
	m.Clock.Stop()
	// Without any field at the start, the API server would never track the owners of fields.
	labels := map[string]string{corev1.LabelHostname: m.Name}
	Expect(api.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name, Labels: labels}})).To(Succeed())
	m.policy = &v1alpha1.RebootPolicy{ObjectMeta: metav1.ObjectMeta{Name: m.Name}, Spec: spec}
	Expect(api.Create(ctx, m.policy)).To(Succeed())
	m.boot(ctx)
	DeferCleanup(func() { m.kill() })
	return m
}

// needing returns a machine whose engine requires a reboot.
func needing(ctx context.Context, spec v1alpha1.RebootPolicySpec) *machine {
	GinkgoHelper()
	m := newMachine(ctx, spec)
	m.Engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
	return m
}

// upToDate returns a machine whose agent has reported that it does not need a reboot.
func upToDate(ctx context.Context) *machine {
	GinkgoHelper()
	m := newMachine(ctx, patient)
	m.start(ctx)
	m.shows(ctx, needOf, Equal("False UpToDate"))
	return m
}

// detectsABroadcast sends the usual test signal and waits until the agent has reported the need.
func (m *machine) detectsABroadcast(ctx context.Context) {
	GinkgoHelper()
	Expect(m.Bus.SendNeedReboot()).To(Succeed())
	m.shows(ctx, needOf, Equal("True UpdateStaged"))
}

// boot ends the current boot with everything on the host. Then the host and its kubelet are up
// again.
func (m *machine) boot(ctx context.Context) {
	GinkgoHelper()
	m.kill()
	Expect(m.Boot()).To(Succeed())
	m.upFor(3 * time.Minute) // long enough to have settled
	m.heartbeat(ctx)
}

// upFor sets the uptime of the host, with immediate effect.
func (m *machine) upFor(uptime time.Duration) {
	GinkgoHelper()
	Expect(m.SetUptime(uptime)).To(Succeed())
}

// heartbeat reports the Node as Ready with the boot ID, as the kubelet does.
func (m *machine) heartbeat(ctx context.Context) {
	GinkgoHelper()
	Expect(m.Post(ctx, api, m.Name)).To(Succeed())
}

// start runs the agent as its program does.
func (m *machine) start(ctx context.Context, flags ...string) {
	GinkgoHelper()
	ready := newReadiness(&m.Clock, renewAfter)
	if m.hurried {
		ready = newReadiness(&m.Clock, 2*time.Second)
	}
	config := rest.CopyConfig(cluster)
	config.Wrap(m.requests.Wrap)
	m.tune(config)
	m.life.Lock()
	defer m.life.Unlock()
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	m.registry = prometheus.NewRegistry()
	agent, err := agentOf(ctx, m.Host, config, ready, func(a *reboot.Assembly) {
		a.Host.UptimeFile, a.Clock, a.Metrics = m.UptimeFile(), &m.Clock, reboot.NewMetrics(m.registry)
	}, flags...)
	Expect(err).NotTo(HaveOccurred())
	var running sync.WaitGroup
	running.Go(func() {
		defer GinkgoRecover()
		Expect(agent.Start(ctx)).To(Succeed())
	})
	m.stop = func() {
		cancel()
		running.Wait()
	}
}

// agentOf returns an agent of a host for the given flags, with some parts replaced. There may be
// several in this process.
func agentOf(
	ctx context.Context, on *played.Host, config *rest.Config, ready readiness, replace func(*reboot.Assembly), flags ...string,
) (manager.Manager, error) {
	o, err := parse(slices.Concat(on.Flags(), []string{"--health-probe-bind-address=0"}, flags), func(string) string { return "" }, io.Discard)
	if err != nil {
		return nil, err
	}
	a := o.assembly(config, ready, reboot.NewMetrics(prometheus.NewRegistry()))
	shipped := a.Manager
	a.Manager = func(options *manager.Options) {
		shipped(options)
		testenv.SeveralManagers(options)
	}
	replace(&a)
	return newAgent(ctx, o, ready, a)
}

// rebootsByLogind makes accepted reboots happen: everything ends, and the host, its kubelet and its
// agent come back.
func (m *machine) rebootsByLogind(ctx context.Context) {
	m.Logind.OnReboot(func() {
		defer GinkgoRecover()
		m.boot(ctx)
		m.start(ctx)
	})
}

// kill ends the agent. It may be called twice.
func (m *machine) kill() {
	m.life.Lock()
	defer m.life.Unlock()
	m.stop()
}

func (m *machine) restart(ctx context.Context) {
	GinkgoHelper()
	m.kill()
	m.start(ctx)
}

func (m *machine) node(ctx context.Context) *corev1.Node {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(api.Get(ctx, client.ObjectKey{Name: m.Name}, node)).To(Succeed())
	return node
}

// change writes to the Node as somebody else.
func (m *machine) change(ctx context.Context, change func(*corev1.Node)) {
	GinkgoHelper()
	node := m.node(ctx)
	before := node.DeepCopy()
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	change(node)
	Expect(api.Patch(ctx, node, client.StrategicMergeFrom(before), client.FieldOwner("somebody"))).To(Succeed())
}

func (m *machine) annotate(ctx context.Context, key, value string) {
	GinkgoHelper()
	m.change(ctx, func(node *corev1.Node) { node.Annotations[key] = value })
}

// grant publishes a grant that the ledger holds, as the manager does.
func (m *machine) grant(ctx context.Context, seq int64, state protocol.GrantState) {
	GinkgoHelper()
	Expect(testenv.Grant(ctx, api, m.policy.Name, m.node(ctx), protocol.Grant{Seq: seq, State: state})).To(Succeed())
}

// requests are the requests of an agent, from all of its processes.
type requests struct{ wire.Wire }

// forbid answers requests for a path as the API server does without permission, from a certain
// number of them on. An empty path restores the permission.
func (r *requests) forbid(path string, after int) {
	r.Meddle(func(request *http.Request) bool {
		matches := path != "" && strings.HasPrefix(request.URL.Path, path)
		if matches {
			after--
		}
		return matches && after < 0
	}, wire.Forbid)
}

// of returns the requests so far whose METHOD PATH contains a text.
func (r *requests) of(part string) []string {
	var paths []string
	for _, request := range r.Matching("", part) {
		path, _, _ := strings.Cut(request, "?")
		paths = append(paths, path)
	}
	return paths
}

// writes returns the writes so far, without events.
func (r *requests) writes() []string {
	return slices.DeleteFunc(r.of(""), func(request string) bool {
		return strings.HasPrefix(request, http.MethodGet) || strings.Contains(request, "/events")
	})
}
