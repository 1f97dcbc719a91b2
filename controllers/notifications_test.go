package controllers_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/agents"
)

// webhook is a receiver over HTTP. A Secret of the same name has its address.
type webhook struct {
	mu  sync.Mutex
	got []string
}

func startWebhook(name string) *webhook {
	w := &webhook{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			w.got = append(w.got, string(body))
		}
	}))
	DeferCleanup(server.Close)
	keepAddress(name, "generic://"+server.Listener.Addr().String()+"/hook?disabletls=yes")
	return w
}

func keepAddress(name, address string) {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, StringData: map[string]string{"url": address}}
	create(s)
}

func (w *webhook) messages() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.got...)
}

func notifies(name string, events ...v1alpha1.NotifyEvent) func(*v1alpha1.RebootPolicySpec) {
	return func(s *v1alpha1.RebootPolicySpec) {
		s.Notify = append(s.Notify, v1alpha1.Notification{SecretRef: v1alpha1.SecretReference{Name: name}, Events: events})
	}
}

var _ = Describe("A service that is notified", func() {
	It("is notified once when a run begins and once when it ends, even if the leader changes", func() {
		hook := startWebhook("notified-of-runs")
		f := makeFleet(3)
		f.need(f.nodes[:2]...)
		f.show("False NoPolicy", f.nodes[:2]...)
		p := f.policy("workers", notifies("notified-of-runs"))
		Eventually(f.granted).Should(HaveLen(1))
		Eventually(hook.messages).Should(ConsistOf(And(
			HavePrefix("Policy "+p.Name+" begins to reboot nodes, at most 1 at once. 2 nodes need a reboot: "), ContainSubstring(f.nodes[0]), ContainSubstring(f.nodes[1]))))
		Expect(policyStatus(p).Run).To(HaveField("Rebooted", BeZero()))

		By("a second manager, which goes on with the run")
		stop := startManager(&requestLog{})
		f.reboot(f.granted()[0])
		Eventually(func() int32 {
			if run := policyStatus(p).Run; run != nil {
				return run.Rebooted
			}
			return 0
		}).Should(BeEquivalentTo(1))
		Eventually(f.granted).Should(HaveLen(1))
		f.reboot(f.granted()[0])
		Eventually(hook.messages).Should(HaveLen(2))
		Expect(hook.messages()[1]).To(And(HavePrefix("Policy "+p.Name+" is done: 2 nodes were rebooted in "), HaveSuffix("; 0 attempts failed.")))
		Expect(policyStatus(p).Run).To(BeNil())
		stop()
		Consistently(hook.messages, "1s").Should(HaveLen(2))
	})

	It("is told at the end of a run what needs a person, even if it concerns no single node", func() {
		hook := startWebhook("notified-of-the-rest")
		f := makeFleet(2)
		f.need(f.nodes...)
		p := f.policy("workers", notifies("notified-of-the-rest", v1alpha1.NotifyFinished))
		Eventually(f.granted).Should(HaveLen(1))
		editPolicy(p, func(p *v1alpha1.RebootPolicy) { limit(0)(&p.Spec) })
		f.reboot(f.granted()[0])
		Eventually(hook.messages).Should(ConsistOf(And(
			HavePrefix("Policy "+p.Name+" is done: 1 node was rebooted"), ContainSubstring("\n1 still waits: BudgetExhausted"),
			HaveSuffix("\nNeeds you: policy "+p.Name+" grants nothing: maxUnavailable is 0. Run: kubectl edit rbp "+p.Name))))
	})

	It("is notified of the nodes of a run whose grants are in the ledger of another policy", func() {
		hook := startWebhook("notified-of-shared-runs")
		cpus, gpus := makeFleet(1), makeFleet(2)
		gpus.need(gpus.nodes[0])
		p := gpus.policy("gpu", sharing(cpus.policy("workers")), notifies("notified-of-shared-runs", v1alpha1.NotifyStarted))
		Eventually(hook.messages).Should(ConsistOf("Policy " + p.Name + " begins to reboot nodes, at most 1 at once. 1 node needs a reboot: " + gpus.nodes[0] + "."))
	})

	It("that cannot be notified delays no reboot, and an event reports it", func() {
		var waiting atomic.Int32
		hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			waiting.Add(1)
			defer waiting.Add(-1)
			<-r.Context().Done()
		}))
		DeferCleanup(hung.CloseClientConnections)
		keepAddress("hung", "generic://"+hung.Listener.Addr().String()+"/hook?disabletls=yes")
		f := makeFleet(2)
		f.need(f.nodes...)
		f.policy("workers", notifies("hung"), notifies("gone"), limit(2))
		Eventually(func() bool { return waiting.Load() > 0 && len(f.granted()) == 2 && waiting.Load() > 0 }).Should(
			BeTrue(), "the first message of the run waits for its answer while both have their grants")
		for _, name := range f.granted() {
			f.reboot(name)
		}
		Eventually(f.granted).Should(BeEmpty())
	})

	It("is notified of a halt, and of what failed", func() {
		hook := startWebhook("notified-of-halts")
		f := makeFleet(1)
		one := int32(1)
		p := f.policy("workers", notifies("notified-of-halts", v1alpha1.NotifyHalted, v1alpha1.NotifyFailed),
			func(s *v1alpha1.RebootPolicySpec) { s.MaxFailures = &one })
		f.need(f.nodes[0])
		Eventually(f.granted).Should(HaveLen(1))
		f.start(f.nodes[0])
		f.abort(f.nodes[0])
		Eventually(hook.messages).Should(ConsistOf(
			"Policy "+p.Name+": the reboot of node "+f.nodes[0]+" failed (aborted): DrainTimedOut: db-0 stays",
			"Policy "+p.Name+" halted: 1 node failed since the last success (maxFailures is 1): "+f.nodes[0]+" (DrainTimedOut); fix them, then run: "+
				"kubectl annotate rebootpolicy "+p.Name+` reboot-operator.io/resume="what was fixed"`))
	})

	It("is notified of a drain that does not end, but not of one that was cancelled", func() {
		hook := startWebhook("notified-of-drains")
		f := makeFleet(1)
		name := f.nodes[0]
		p := f.policy("workers", notifies("notified-of-drains", v1alpha1.NotifyFailed))
		f.need(name)
		Eventually(f.granted).Should(HaveLen(1))
		f.start(name)
		f.plays(name, agents.Abort(v1alpha1.ReasonCancelled, "", time.Now()))
		Eventually(func() int64 { return f.grant(name).Seq }).Should(BeNumerically(">", 1), "it is not a failure, and delays nothing")
		f.start(name)
		f.passes(name, time.Hour)
		Eventually(f.reason).WithArguments(name).Should(Equal("True DrainTimedOut"))
		Eventually(hook.messages).Should(ConsistOf(HavePrefix("Policy " + p.Name + ": the reboot of node " + name + " failed (DrainTimedOut): the drain began at ")))
	})

	It("is notified of each node if it asks for that, with the user's template", func() {
		hook := startWebhook("notified-of-nodes")
		f := makeFleet(1)
		f.need(f.nodes[0])
		p := f.policy("workers", notifies("notified-of-nodes", v1alpha1.NotifyRebooting, v1alpha1.NotifyBack),
			func(s *v1alpha1.RebootPolicySpec) { s.Notify[0].Template = "{event} {node}: {text}" })
		Eventually(f.granted).Should(HaveLen(1))
		rebooting := fmt.Sprintf("Rebooting %[1]s: Policy %[2]s: node %[1]s will be drained and rebooted", f.nodes[0], p.Name)
		Eventually(hook.messages).Should(ConsistOf(rebooting))
		f.reboot(f.nodes[0])
		Eventually(hook.messages).Should(ConsistOf(rebooting,
			HavePrefix("Back %[1]s: Policy %[2]s: node %[1]s is back in service after ", f.nodes[0], p.Name)))
	})
})
