package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/agent/host/hosttest"
	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

const (
	locksmithUnit = "locksmithd.service"
	locksmithConf = "NAME=locksmithd\nSTRATEGY=reboot\nSTATE=running"
)

// runUnits puts a systemd on the machine's bus.
func runUnits(m *machine) *hosttest.Units {
	GinkgoHelper()
	units, err := hosttest.StartUnits(m.Bus)
	Expect(err).NotTo(HaveOccurred())
	return units
}

// looks makes the agent look before its minute is over.
func looks(ctx context.Context, m *machine) {
	GinkgoHelper()
	m.annotate(ctx, v1alpha1.GroupVersion.Group+"/look", time.Now().String())
}

var _ = Describe("another coordinator (behaviour 57)", func() {
	spec := func(coordinators v1alpha1.CoordinatorPolicy) v1alpha1.RebootPolicySpec {
		return v1alpha1.RebootPolicySpec{
			Drain:  &v1alpha1.Drain{Timeout: &metav1.Duration{Duration: 3 * time.Second}},
			Reboot: &v1alpha1.Reboot{Coordinators: coordinators},
		}
	}
	const isActive = "CoordinatorConflict: locksmithd is active on this host and may reboot it at any time: " +
		"systemctl mask --now locksmithd.service on the host, or set spec.reboot.coordinators: Ignore."

	It("is locksmithd, which is reported before a grant is given, by an event too, until it is stopped", func(ctx SpecContext) {
		m := newMachine(ctx, spec(""))
		units := runUnits(m)
		units.Set(locksmithUnit, "active")
		m.Engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
		m.start(ctx)
		m.shows(ctx, objectionOf, Equal(isActive))
		m.emits(ctx, string(v1alpha1.ReasonCoordinatorConflict))

		By("looking again, at no cost")
		writes, asked := len(m.requests.writes()), units.Asked()
		looks(ctx, m)
		Eventually(units.Asked).Should(BeNumerically(">", asked))
		Expect(m.requests.writes()).To(HaveLen(writes))

		units.Set(locksmithUnit, "inactive")
		looks(ctx, m)
		m.shows(ctx, objectionOf, BeEmpty())
		Expect(m.eventsOf(ctx)).To(HaveKeyWithValue(string(v1alpha1.ReasonCoordinatorConflict), 1))
	})

	It("is reported before the host needs anything: by the condition, and by one event", func(ctx SpecContext) {
		m := newMachine(ctx, spec(""))
		units := runUnits(m)
		units.Set("zincati.service", "active")
		m.start(ctx)
		const zincati = "Zincati is active on this host and may reboot it at any time: " +
			"systemctl mask --now zincati.service on the host, or set spec.reboot.coordinators: Ignore."
		m.shows(ctx, needOf, Equal("False UpToDate"))
		m.shows(ctx, messageOf(v1alpha1.NodeRebootRequired), ContainSubstring(zincati))
		m.shows(ctx, objectionOf, Equal("CoordinatorConflict: "+zincati))
		m.emits(ctx, string(v1alpha1.ReasonCoordinatorConflict))

		By("turning it off in its configuration")
		units.SetStatusText("zincati.service", "initialization complete, auto-updates logic disabled by configuration")
		looks(ctx, m)
		m.shows(ctx, objectionOf, BeEmpty())
		m.shows(ctx, messageOf(v1alpha1.NodeRebootRequired), Not(ContainSubstring("Zincati")))
		Expect(m.eventsOf(ctx)).To(HaveKeyWithValue(string(v1alpha1.ReasonCoordinatorConflict), 1))
	})

	It("is detected by signal: a unit that starts, a shutdown that is scheduled, at no cost while nothing is", func(ctx SpecContext) {
		m := newMachine(ctx, spec(""))
		units := runUnits(m)
		m.Engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
		m.start(ctx)
		m.shows(ctx, needOf, Equal("True UpdateStaged"))
		Eventually(func() string { // Nothing reports when the agent has subscribed.
			units.Set("rebootmgr.service", "active")
			return objectionOf(m.node(ctx))
		}).Should(HavePrefix("CoordinatorConflict: rebootmgr is active"))
		units.Set("rebootmgr.service", "inactive")
		m.shows(ctx, objectionOf, BeEmpty())
		m.Logind.Schedule(hosttest.Scheduled{Type: "reboot", USec: 1795399200_000_000})
		m.shows(ctx, objectionOf, Equal("CoordinatorConflict: A shutdown of this host (reboot) is scheduled for Mon 2026-11-23 02:00:00 UTC: "+
			"shutdown -c on the host, or set spec.reboot.coordinators: Ignore."))
		m.Logind.Schedule(nil)
		m.shows(ctx, objectionOf, BeEmpty())
	})

	It("holds coordinator.conf, and what it leaves behind means nothing", func(ctx SpecContext) {
		m := newMachine(ctx, spec(""))
		other, err := hosttest.Coordinate(m.Root, "NAME=fluo\nSTATE=running\n")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(other.End)
		m.Engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
		m.start(ctx)
		m.shows(ctx, objectionOf, HavePrefix("CoordinatorConflict: fluo holds /run/update-engine/coordinator.conf on this host"))
		other.End()
		looks(ctx, m)
		m.shows(ctx, objectionOf, BeEmpty())
	})

	It("is reported beside an inhibitor, for a policy that ignores that", func(ctx SpecContext) {
		m := newMachine(ctx, spec(""))
		runUnits(m).Set(locksmithUnit, "active")
		m.Logind.SetInhibitors(hosttest.BlockShutdown("packagekit", "Transaction in progress"))
		m.Engine.SetStatus(hosttest.NeedReboot("4593.1.0"))
		m.start(ctx)
		m.shows(ctx, objectionOf, HavePrefix("Inhibited: "))
		report, err := protocol.ParseAgentReport(m.node(ctx).Annotations)
		Expect(err).NotTo(HaveOccurred())
		Expect(report.Objection.All()).To(HaveExactElements(
			HaveField("Reason", v1alpha1.ReasonInhibited), HaveField("Reason", v1alpha1.ReasonCoordinatorConflict)))
	})
})

// TestCoordinatorConflict runs a manager and an agent on a host where locksmithd is active: nothing is granted until it is
// stopped, unless the policy ignores it (behaviour 57).
func TestCoordinatorConflict(t *testing.T) {
	api, config := crashCluster(t)
	for name, policy := range map[string]v1alpha1.CoordinatorPolicy{
		"respected": "", "ignored": v1alpha1.CoordinatorsIgnore,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), scenarioLimit)
			s := &scenario{t: t, api: api, config: config, name: name}
			defer s.wg.Wait()
			defer cancel()
			rbp, host := s.createPolicy(ctx), s.createHost(ctx, "a")
			before := client.MergeFrom(rbp.DeepCopy())
			rbp.Spec.Reboot = &v1alpha1.Reboot{Coordinators: policy}
			must(t, api.Patch(ctx, rbp, before))
			units, err := hosttest.StartUnits(host.Bus)
			must(t, err)
			units.Set(locksmithUnit, "active")
			manager := s.process("manager", s.newManager)
			manager.start(ctx)
			host.agent.start(ctx)
			if policy != v1alpha1.CoordinatorsIgnore {
				s.eventually(ctx, func() bool {
					return strings.HasPrefix(s.permitted(ctx, host.name), "False CoordinatorConflict: locksmithd is active")
				})
				s.eventually(ctx, func() bool { return s.emitted(ctx, host.name, string(v1alpha1.ReasonCoordinatorConflict)) })
				if host.reboots.Load() != 0 {
					t.Error("rebooted beside locksmithd")
				}
				units.Set(locksmithUnit, "inactive")
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host.name}}
				wake := client.MergeFrom(node.DeepCopy())
				node.Annotations = map[string]string{v1alpha1.AnnotationPaused: "false"} // before the agent's minute is over
				must(t, api.Patch(ctx, node, wake))
			}
			s.eventually(ctx, func() bool { return s.done(ctx, rbp, []*crashedHost{host}) })
			manager.kill()
			host.agent.kill()
			s.cleanUp(rbp, []*crashedHost{host})
		})
	}
}

func (s *scenario) eventually(ctx context.Context, holds func() bool) {
	s.t.Helper()
	err := wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		s.t.Fatal(err)
	}
}

// permitted is condition RebootPermitted; empty where it is absent.
func (s *scenario) permitted(ctx context.Context, name string) string {
	node := &corev1.Node{}
	if err := s.api.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
		return ""
	}
	for _, c := range node.Status.Conditions {
		if c.Type == v1alpha1.NodeRebootPermitted {
			return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	return ""
}

// emitted reports whether there is an event about a Node.
func (s *scenario) emitted(ctx context.Context, name, reason string) bool {
	list := &eventsv1.EventList{}
	if err := s.api.List(ctx, list); err != nil {
		return false
	}
	for _, e := range list.Items {
		if e.Regarding.Name == name && e.Reason == reason && e.Type == corev1.EventTypeWarning {
			return true
		}
	}
	return false
}
