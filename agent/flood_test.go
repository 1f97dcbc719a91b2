package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/godbus/dbus/v5"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/reboot-operator/reboot-operator/agent/reboot"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
	"github.com/reboot-operator/reboot-operator/hack/limits/footprint"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

// reconciles returns the number of decisions of this process's agents, and the number that are
// pending.
func reconciles() (decided, deciding int) {
	GinkgoHelper()
	families, err := metrics.Registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() != "controller" || l.GetValue() != "agent" {
					continue
				}
				switch family.GetName() {
				case "controller_runtime_reconcile_total":
					decided += int(m.GetCounter().GetValue())
				case "controller_runtime_active_workers":
					deciding += int(m.GetGauge().GetValue())
				}
			}
		}
	}
	return decided, deciding
}

// flooded checks that a flood uses up no resources and causes no requests to the API server.
func flooded(m *machine, description string, one func(i int)) (decided int) {
	GinkgoHelper()
	decided, asked := footprint.Flood(GinkgoT(), "agent", description, one, func() int { return rests(m) }, m.requests.Len)
	Expect(asked).To(BeNumerically("<=", 2), "watches that end by themselves are opened again; nothing else is asked")
	return decided
}

// rests waits until the agent has handled everything it received, and returns the number of
// decisions of this process's agents.
func rests(m *machine) (decided int) {
	GinkgoHelper()
	last := -1
	Eventually(func() bool {
		before := last
		var deciding int
		last, deciding = reconciles()
		return before == last && deciding == 0
	}).WithPolling(200 * time.Millisecond).Should(BeTrue())
	return last
}

var _ = Describe("A flood", func() {
	// timed is the number of decisions per minute without any signal during a long flood. An agent
	// that requires a reboot checks regularly what no signal reports.
	const timed = 10
	asking := func(ctx SpecContext) *machine {
		m := measured(ctx, v1alpha1.RebootPolicySpec{})
		m.start(ctx)
		m.annotate(ctx, v1alpha1.AnnotationRebootRequested, "please")
		m.shows(ctx, needOf, Equal("True Requested"))
		m.emits(ctx, v1alpha1.EventRebootRequired)
		return m
	}

	It("of logind signals causes fewer passes than there are signals", func(ctx SpecContext) {
		m := asking(ctx)
		size := testenv.Number("FLOOD", 100)
		decided := flooded(m, "signals of logind about inhibitors", func(int) { m.Logind.SetInhibitors() })
		Expect(decided).To(BeNumerically("<=", size))

		By("not listening to what it does not need")
		conn, err := m.Bus.Connect()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(conn.Close)
		decided = flooded(m, "signals PrepareForShutdown, and properties that anybody else changes", func(i int) {
			Expect(conn.Emit("/org/freedesktop/login1", "org.freedesktop.login1.Manager.PrepareForShutdown", i%2 == 0)).To(Succeed())
			Expect(conn.Emit("/org/freedesktop/login1", "org.freedesktop.DBus.Properties.PropertiesChanged",
				"org.freedesktop.login1.Manager", map[string]dbus.Variant{"BlockInhibited": dbus.MakeVariant("")}, []string{})).To(Succeed())
		})
		Expect(decided).To(BeNumerically("<=", 1), "the look of a minute that ends just then")
	})

	It("of progress signals of update engines is absorbed", func(ctx SpecContext) {
		m := measured(ctx, v1alpha1.RebootPolicySpec{})
		cos, err := hosttest.StartCOSUpdateEngine(m.Bus, hosttest.COSCurrent)
		Expect(err).NotTo(HaveOccurred())
		booted := hosttest.Deployment{Version: "40.1", Booted: true}
		ostree, err := hosttest.InstallRPMOSTree(m.Bus, booted)
		Expect(err).NotTo(HaveOccurred())
		Expect(ostree.Start()).To(Succeed())
		m.start(ctx, "--engines=update-engine,cos-update-engine,rpm-ostree")
		m.shows(ctx, needOf, Equal("False UpToDate"))
		flooded(m, "signals of update_engine", func(i int) {
			Expect(m.Engine.Emit(hosttest.Status{Op: hosttest.OpDownloading, Version: "4001.0.0", Size: 1 << 20, Progress: float64(i%100) / 100})).To(Succeed())
		})
		flooded(m, "signals of COS' update_engine", func(i int) {
			Expect(cos.Emit(hosttest.COSStatus{Op: hosttest.COSDownloading, Version: "17800.147.54", Size: int64(i)})).To(Succeed())
		})
		flooded(m, "signals of rpm-ostree", func(int) { Expect(ostree.SetDeployments(booted)).To(Succeed()) })

		By("hearing what comes after")
		Expect(m.Engine.Emit(hosttest.NeedReboot("4593.1.0"))).To(Succeed())
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
	})

	It("of heartbeats and unrelated labels is ignored (behaviours 4, 56)", func(ctx SpecContext) {
		m := asking(ctx)
		Expect(flooded(m, "heartbeats", func(int) { m.heartbeat(ctx) })).To(BeNumerically("<=", timed))
		Expect(flooded(m, "changes of the Node's labels", func(i int) {
			m.change(ctx, func(node *corev1.Node) { node.Labels["example.com/flood"] = strconv.Itoa(i) })
		})).To(BeNumerically("<=", timed))
		other := newMachine(ctx, patient)
		Expect(flooded(m, "changes of another Node", func(i int) {
			other.change(ctx, func(node *corev1.Node) { node.Labels["example.com/flood"] = strconv.Itoa(i) })
		})).To(BeNumerically("<=", timed))
	})

	It("of needs that come and go causes writes at the usual rate, and at most one Event for each write", func(ctx SpecContext) {
		m := measured(ctx, v1alpha1.RebootPolicySpec{})
		m.tune = func(config *rest.Config) { config.QPS = 0 } // the agent's own limit
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		begin, size := time.Now(), testenv.Number("FLOOD", 100)
		for i := range size {
			Expect(m.Engine.Emit(hosttest.NeedReboot(fmt.Sprintf("5000.%d.0", i)))).To(Succeed())
			Expect(m.Engine.Emit(hosttest.Idle())).To(Succeed())
		}
		Expect(m.Engine.Emit(hosttest.NeedReboot("6000.0.0"))).To(Succeed())
		m.shows(ctx, messageOf(v1alpha1.NodeRebootRequired), ContainSubstring("6000.0.0"))
		rests(m)
		allowed := reboot.Burst + reboot.QPS*int(time.Since(begin).Seconds()+2)
		writes, events := len(m.requests.writes()), m.eventsOf(ctx)[v1alpha1.EventRebootRequired]
		footprint.AddRow(GinkgoT(), "events", fmt.Sprintf("agent, %d needs that come and go", size), writes, events)
		Expect(writes).To(BeNumerically("<=", allowed))
		Expect(events).To(BeNumerically("<=", writes))
	})
})
