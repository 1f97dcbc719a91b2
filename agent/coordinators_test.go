package main

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/hosttest"
)

const locksmithUnit = "locksmithd.service"

// runUnits puts a systemd on the machine's bus.
func runUnits(m *machine) *hosttest.Units {
	GinkgoHelper()
	units, err := hosttest.StartUnits(m.Bus)
	Expect(err).NotTo(HaveOccurred())
	return units
}

// looks makes the agent check the host before its minute is over.
func looks(ctx context.Context, m *machine) {
	GinkgoHelper()
	m.annotate(ctx, v1alpha1.GroupVersion.Group+"/look", time.Now().String())
}

var _ = Describe("another coordinator (behaviour 57)", func() {
	const isActive = "CoordinatorConflict: locksmithd is active on this host and may reboot it at any time: " +
		"systemctl mask --now locksmithd.service on the host, or set spec.reboot.coordinators: Ignore."

	It("is locksmithd, which is reported before a grant, with an event, until it is stopped", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		units := runUnits(m)
		units.Set(locksmithUnit, "active")
		m.Engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
		m.start(ctx)
		m.shows(ctx, blockerOf, Equal(isActive))
		m.emits(ctx, string(v1alpha1.ReasonCoordinatorConflict))

		By("looking again, at no cost")
		writes, asked := len(m.requests.writes()), units.Asked()
		looks(ctx, m)
		Eventually(units.Asked).Should(BeNumerically(">", asked))
		Expect(m.requests.writes()).To(HaveLen(writes))

		units.Set(locksmithUnit, "inactive")
		looks(ctx, m)
		m.shows(ctx, blockerOf, BeEmpty())
		Expect(m.eventsOf(ctx)).To(HaveKeyWithValue(string(v1alpha1.ReasonCoordinatorConflict), 1))
	})

	It("is reported before the host needs a reboot, by the condition and one event", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		for _, mounted := range []string{"usr", "run"} {
			Expect(os.MkdirAll(filepath.Join(m.Root, mounted), 0o700)).To(Succeed())
		}
		units := runUnits(m)
		units.Set("zincati.service", "active")
		m.start(ctx)
		const zincati = "Zincati is active on this host and may reboot it at any time: " +
			`printf '[updates]\nstrategy = "fleet_lock"\nfleet_lock.base_url = "http://CLUSTER-IP/"\n' ` +
			">/etc/zincati/config.d/99-fleet-lock.toml && systemctl restart zincati.service on the host, or set spec.reboot.coordinators: Ignore."
		m.shows(ctx, needOf, Equal("False UpToDate"))
		m.shows(ctx, messageOf(v1alpha1.NodeRebootRequired), ContainSubstring(zincati))
		m.shows(ctx, blockerOf, Equal("CoordinatorConflict: "+zincati))
		m.emits(ctx, string(v1alpha1.ReasonCoordinatorConflict))

		By("turning it off in its configuration")
		units.SetStatusText("zincati.service", "initialization complete, auto-updates logic disabled by configuration")
		looks(ctx, m)
		m.shows(ctx, blockerOf, BeEmpty())
		m.shows(ctx, messageOf(v1alpha1.NodeRebootRequired), Not(ContainSubstring("Zincati")))
		Expect(m.eventsOf(ctx)).To(HaveKeyWithValue(string(v1alpha1.ReasonCoordinatorConflict), 1))
	})

	It("is detected by signal if a unit starts or a shutdown is scheduled, without polling", func(ctx SpecContext) {
		m := newMachine(ctx, patient)
		units := runUnits(m)
		m.Engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
		m.start(ctx)
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		Eventually(func() string { // because no signal shows that the agent has subscribed
			units.Set("rebootmgr.service", "active")
			return blockerOf(m.node(ctx))
		}).Should(HavePrefix("CoordinatorConflict: rebootmgr is active"))
		units.Set("rebootmgr.service", "inactive")
		m.shows(ctx, blockerOf, BeEmpty())
		m.Logind.Schedule(hosttest.Scheduled{Type: "reboot", USec: 1795399200_000_000})
		m.shows(ctx, blockerOf, Equal("CoordinatorConflict: A shutdown of this host (reboot) is scheduled for Mon 2026-11-23 02:00:00 UTC: "+
			"shutdown -c on the host, or set spec.reboot.coordinators: Ignore."))
		m.Logind.Schedule(nil)
		m.shows(ctx, blockerOf, BeEmpty())
	})
})
