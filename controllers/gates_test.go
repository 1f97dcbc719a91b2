package controllers_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/promserver"
)

// gateServer is a real Prometheus that scrapes a real exporter, behind a proxy that counts requests
// and requires a token. All specs share one Prometheus, but each has its own proxy and address.
type gateServer struct {
	*promserver.Server

	errors prometheus.Gauge
	url    string
	asked  atomic.Int32
}

// startGateServer runs Prometheus until the end of the container.
func startGateServer() *gateServer {
	GinkgoHelper()
	g := &gateServer{errors: prometheus.NewGauge(prometheus.GaugeOpts{Name: "test_errors"})}
	registry := prometheus.NewRegistry()
	registry.MustRegister(g.errors)
	exporter := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	DeferCleanup(exporter.Close)
	g.Server = promserver.Start(GinkgoTB(), "", fmt.Sprintf(`{global: {scrape_interval: 400ms, scrape_timeout: 400ms},
		scrape_configs: [{job_name: test, static_configs: [{targets: ["%s"]}]}]}`, exporter.Listener.Addr()))
	return g
}

// open starts a proxy before the server until the end of the spec, and waits until Prometheus sees
// no errors.
func (g *gateServer) open() {
	GinkgoHelper()
	g.errors.Set(0)
	g.asked.Store(0)
	DeferCleanup(g.Resume)
	behind, err := url.Parse(g.URL)
	Expect(err).NotTo(HaveOccurred())
	proxy := httputil.NewSingleHostReverseProxy(behind)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.asked.Add(1)
		if r.Header.Get("Authorization") != "Bearer hunter2" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	DeferCleanup(front.CloseClientConnections)
	g.url = front.URL
	Eventually(func() int {
		found, err := g.Query(context.Background(), "test_errors == 0")
		Expect(err).NotTo(HaveOccurred())
		return len(found)
	}).Should(Equal(1))
}

// gate returns a gate that is clear without errors, with edits.
func (g *gateServer) gate(edit ...func(*v1alpha1.PrometheusGate)) func(*v1alpha1.RebootPolicySpec) {
	gate := v1alpha1.PrometheusGate{
		Name: "errors", URL: g.url, Query: "test_errors > 2", SecretRef: &v1alpha1.SecretReference{Name: "prometheus"},
	}
	for _, e := range edit {
		e(&gate)
	}
	return func(s *v1alpha1.RebootPolicySpec) {
		s.Gates = &v1alpha1.Gates{Prometheus: []v1alpha1.PrometheusGate{gate}}
	}
}

// fire sets the number of errors, and waits until Prometheus has it.
func (g *gateServer) fire(errors float64) {
	GinkgoHelper()
	g.errors.Set(errors)
	Eventually(func() any {
		found, err := g.Query(context.Background(), "test_errors > 2")
		Expect(err).NotTo(HaveOccurred())
		return found
	}).Should(HaveLen(1))
}

// gateState returns state and message of the policy's one gate.
func gateState(p *v1alpha1.RebootPolicy) string {
	for _, g := range policyStatus(p).Gates {
		return string(g.State) + " " + g.Message
	}
	return ""
}

var _ = Describe("A gate that asks Prometheus", Ordered, ContinueOnFailure, func() {
	var server *gateServer
	BeforeAll(func() { server = startGateServer() })
	BeforeEach(func() {
		server.open()
		token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "prometheus", Namespace: "default"}, StringData: map[string]string{"token": "hunter2"}}
		create(token)
	})

	It("blocks reboots while its query has a result", func() {
		server.fire(7)
		f := makeFleet(3)
		p := f.policy("workers", server.gate())
		Eventually(acceptedReason).WithArguments(p).Should(Equal("Accepted"))
		Consistently(server.asked.Load, gateInterval).Should(BeZero(), "no node waits")
		f.need(f.nodes...)
		for _, name := range f.nodes {
			Eventually(f.reason).WithArguments(name).Should(Equal("False AlertFiring"))
			Expect(f.condition(name, v1alpha1.NodeRebootPermitted).Message).To(
				And(HavePrefix("gate errors of policy "+p.Name+": test_errors{instance="), HaveSuffix("= 7")))
		}
		Eventually(gateState).WithArguments(p).Should(HavePrefix("Firing test_errors{"))
		Eventually(reasonsOf).WithArguments(p.Name).Should(ContainElement("AlertFiring"))
		Eventually(blocked).WithArguments(p.Name).Should(Equal(map[string]float64{"AlertFiring": 3}))
		Expect(policyStatus(p).Grants).To(BeEmpty())

		By("clearing in mid-rollout")
		server.errors.Set(0)
		Eventually(f.granted).Should(HaveLen(1))
		Expect(gateState(p)).To(Equal("Clear "))
		first := f.granted()[0]
		f.start(first)

		By("firing while the first one drains, which is finished")
		server.errors.Set(8)
		Eventually(gateState).WithArguments(p).Should(HavePrefix("Firing test_errors{"))
		f.comeBack(first)
		Eventually(f.granted).Should(BeEmpty())
		asked := server.asked.Load()
		Eventually(server.asked.Load).Should(BeNumerically(">", asked+1))
		Expect(f.granted()).To(BeEmpty(), "after two more answers")

		By("clearing again")
		server.errors.Set(1)
		for range 2 {
			name := f.next()
			f.reboot(name)
			Eventually(f.granted).ShouldNot(ContainElement(name), "the next one may have its grant already")
		}
		Eventually(gateState).WithArguments(p).Should(BeEmpty(), "nobody waits any more")
		asked = server.asked.Load()
		Consistently(server.asked.Load, 3*gateInterval).Should(BeNumerically("<=", asked+1))
	})

	It("blocks reboots while the server does not respond, but not those of other policies", func() {
		server.Freeze()
		slow, other := makeFleet(2), makeFleet(1)
		p := slow.policy("workers", server.gate())
		questions.Lock()
		release := sync.OnceFunc(questions.Unlock)
		DeferCleanup(release)
		slow.need(slow.nodes...)
		other.need(other.nodes...)
		Eventually(questions.open.Load).ShouldNot(BeZero())
		other.policy("workers")
		Eventually(other.granted).Should(HaveLen(1))
		Expect(questions.open.Load()).NotTo(BeZero(), "the question is open still")
		release()
		Eventually(slow.reason).WithArguments(slow.nodes[0]).Should(Equal("False GateUnreachable"))
		Expect(slow.condition(slow.nodes[0], v1alpha1.NodeRebootPermitted).Message).To(
			Equal("gate errors of policy " + p.Name + ": no answer within 10s"))
		Eventually(reasonsOf).WithArguments(p.Name).Should(ContainElement("GateUnreachable"))
		server.Resume()
		Eventually(slow.granted).Should(HaveLen(1))
	})

	It("reports a missing Secret, and uses it from the next query on", func() {
		f := makeFleet(1)
		p := f.policy("workers", server.gate(func(g *v1alpha1.PrometheusGate) { g.SecretRef.Name = "late" }))
		f.need(f.nodes...)
		Eventually(gateState).WithArguments(p).Should(Equal("Unreachable Secret late is missing in namespace default"))
		late := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "late", Namespace: "default"}, StringData: map[string]string{"token": "wrong"}}
		create(late)
		Eventually(gateState).WithArguments(p).Should(Equal("Unreachable the server refuses: client error: 401"))
		Expect(f.granted()).To(BeEmpty())
		late.Data = map[string][]byte{"token": []byte("hunter2")}
		Expect(api.Update(context.Background(), late)).To(Succeed())
		Eventually(f.granted).Should(HaveLen(1))
	})

	It("is queried once for all nodes and policies that wait, and writes nothing while its result is the same", func() {
		server.fire(7)
		a, b := makeFleet(10), makeFleet(10)
		p := a.policy("workers", server.gate())
		q := b.policy("workers", server.gate(func(g *v1alpha1.PrometheusGate) { g.Name = "the-same" }))
		a.need(a.nodes...)
		b.need(b.nodes...)
		for _, f := range []*fleet{a, b} {
			f.show("False AlertFiring", f.nodes...)
		}
		for _, p := range []*v1alpha1.RebootPolicy{p, q} {
			Eventually(gateState).WithArguments(p).Should(HavePrefix("Firing"))
		}
		sent := func() int { return requests.Len() + len(requests.Matching(methodGet, "/secrets/")) }
		before, asked, started := sent(), server.asked.Load(), time.Now()
		Eventually(server.asked.Load).Should(BeNumerically(">=", asked+3))
		server.errors.Set(9)
		Eventually(server.asked.Load).Should(BeNumerically(">=", asked+6))
		// The first of six queries may already have been under way. One query per policy would take
		// half as long.
		Expect(time.Since(started)).To(BeNumerically(">", 3*gateInterval))
		Expect(sent()-before).To(BeNumerically("<=", int(server.asked.Load()-asked)+4), "a Secret is read for each question; of each policy, counts that had been put off may be written")
	})
})
