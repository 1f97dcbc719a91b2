package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/fleet/timeline"
	"github.com/reboot-operator/reboot-operator/hack/rack"
	"github.com/reboot-operator/reboot-operator/hack/testenv"
)

var _ = Describe("three machines", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		here.usePolicy(ctx)
	})

	It("reboot one at a time when update_engine has an update for each, and all is back", func(ctx SpecContext) {
		before, began := here.bootIDs(), time.Now()
		images, boots := map[string]string{}, map[string]int{}
		for _, m := range here.rack.Machines {
			images[m.Name], boots[m.Name] = here.node(ctx, m.Name).Status.NodeInfo.OSImage, m.Boots()
		}
		w := witnessed(here)
		here.logf("update_engine installs an update on each machine")
		for _, m := range here.rack.Machines {
			here.installUpdate(ctx, m)
		}
		here.awaitRest(ctx, w, 3)
		for _, m := range here.rack.Machines {
			Expect(m.Boots()).To(Equal(boots[m.Name]+1), m.Name)
			node := here.node(ctx, m.Name)
			Expect(node.Status.NodeInfo.BootID).To(And(Equal(here.bootIDs()[m.Name]), Not(Equal(before[m.Name]))))
			Expect(node.Status.NodeInfo.OSImage).To(And(HavePrefix("Rack 400"), Not(Equal(images[m.Name]))))
			Expect(here.events(ctx, Default, m.Name, "Rebooted")).To(
				ContainElement(fmt.Sprintf("Node %s has been rebooted, boot id: %s", m.Name, node.Status.NodeInfo.BootID)), "the kubelet's own word")
		}
		testifyIdentities(here, began)
	})

	// systemd 252 lets root override the inhibitors of root, and 257 does not. The agent must not
	// override them with either.
	It("wait while somebody holds an inhibitor on each, report who, and reboot when they are released", func(ctx SpecContext) {
		before := here.bootIDs()
		for _, m := range here.rack.Machines {
			here.inhibit(ctx, m)
		}
		w := witnessed(here)
		here.logf("update_engine installs an update on each machine")
		for _, m := range here.rack.Machines {
			here.installUpdate(ctx, m)
		}
		here.eventually(ctx, "each reports that the backup keeps it up", func(g Gomega) {
			for _, m := range here.rack.Machines {
				permitted := v1alpha1.NodeCondition(here.node(ctx, m.Name).Status.Conditions, v1alpha1.NodeRebootPermitted)
				g.Expect(permitted.Status).To(Equal(corev1.ConditionFalse), m.Name)
				g.Expect(permitted.Reason).To(Equal(string(v1alpha1.ReasonInhibited)), m.Name)
				g.Expect(permitted.Message).To(And(ContainSubstring("backup"), ContainSubstring("a backup is running")), m.Name)
			}
		})
		Expect(here.bootIDs()).To(Equal(before))
		for _, m := range here.rack.Machines {
			here.shell(ctx, m, "systemctl stop backup")
		}
		here.logf("the backups have ended")
		here.awaitRest(ctx, w, 3)
	})

	It("leave the others up when one does not come back, report it, and go on when it does", func(ctx SpecContext) {
		const dead, next = "node-1", "node-2"
		boots := here.machine(next).Boots()
		here.adapt(ctx, `{"reboot":{"timeout":"10s"}}`)
		here.machine(dead).Unplug()
		w := witnessed(here)
		here.logf("update_engine installs an update on %s, which will not come up again", dead)
		here.installUpdate(ctx, here.machine(dead))
		here.eventually(ctx, "it is down", func(g Gomega) { g.Expect(here.machine(dead).IsOn()).To(BeFalse()) })
		here.installUpdate(ctx, here.machine(next))
		here.eventually(ctx, "it has failed, and keeps its slot", func(g Gomega) {
			permitted := v1alpha1.NodeCondition(here.node(ctx, dead).Status.Conditions, v1alpha1.NodeRebootPermitted)
			g.Expect(permitted.Status).To(Equal(corev1.ConditionTrue))
			g.Expect(permitted.Reason).To(Equal(string(v1alpha1.ReasonRebootTimedOut)))
			status := here.policyStatus(ctx, g)
			g.Expect(status.Grants).To(ConsistOf(HaveField("Node", dead)))
			g.Expect(status.Nodes.Failed).To(Equal(int32(1)))
			g.Expect(here.events(ctx, g, dead, string(v1alpha1.ReasonRebootTimedOut))).To(HaveLen(1))
		})
		here.adapt(ctx, `{"reboot":{"timeout":"1m"}}`)
		permitted := v1alpha1.NodeCondition(here.node(ctx, next).Status.Conditions, v1alpha1.NodeRebootPermitted)
		Expect(permitted.Reason).To(Equal(string(v1alpha1.ReasonBudgetExhausted)), "%s: %s", next, permitted.Message)
		Expect(here.machine(next).Boots()).To(Equal(boots), "%s stays up", next)
		here.machine(dead).PlugIn()
		here.logf("somebody switches it on")
		here.awaitRest(ctx, w, 2)
	})
})

// installUpdate installs an update on a machine, and requests the reboot.
func (s *site) installUpdate(ctx context.Context, m *rack.Machine) {
	GinkgoHelper()
	Expect(m.InstallUpdate()).To(Succeed())
	s.requestReboot(ctx, m)
}

// requestReboot requests a reboot of the node once it needs one. Without a request, a node that was
// rebooted within the last half hour waits.
func (s *site) requestReboot(ctx context.Context, m *rack.Machine) {
	GinkgoHelper()
	s.eventually(ctx, m.Name+" needs a reboot", func(g Gomega) {
		required := v1alpha1.NodeCondition(s.node(ctx, m.Name).Status.Conditions, v1alpha1.NodeRebootRequired)
		g.Expect(required.Status).To(Equal(corev1.ConditionTrue), required.Message)
	})
	Expect(s.cluster.Kubectl(ctx, nil, "annotate", "--overwrite", "node", m.Name, v1alpha1.AnnotationRebootRequested+"=now")).Error().NotTo(HaveOccurred())
}

// inhibit starts a backup that inhibits the shutdown until unit backup is stopped.
func (s *site) inhibit(ctx context.Context, m *rack.Machine) {
	GinkgoHelper()
	s.shell(ctx, m, "systemd-run --unit=backup --collect systemd-inhibit --what=shutdown --mode=block --who=backup --why='a backup is running' sleep infinity")
	s.eventually(ctx, "a backup inhibits that "+m.Name+" goes down", func(g Gomega) {
		g.Expect(m.Run(ctx, "systemd-inhibit", "--list", "--no-pager")).To(ContainSubstring("a backup is running"))
	})
}

// usePolicy applies the minimal policy, with timeouts for machines that boot in a second.
func (s *site) usePolicy(ctx context.Context) {
	GinkgoHelper()
	Expect(s.cluster.Apply(ctx, filepath.Join(testenv.Root(), "config", "samples", "minimal.yaml"))).To(Succeed())
	s.adapt(ctx, `{"reboot":{"timeout":"1m","settle":"1s"}}`)
}

// adapt changes fields of the policy's spec.
func (s *site) adapt(ctx context.Context, spec string) {
	GinkgoHelper()
	Expect(s.cluster.Kubectl(ctx, nil, "patch", "rebootpolicy", policy, "--type=merge", "--patch", `{"spec":`+spec+`}`)).Error().NotTo(HaveOccurred())
}

// bootIDs returns the boot IDs as the machines themselves report them.
func (s *site) bootIDs() map[string]string {
	GinkgoHelper()
	ids := map[string]string{}
	for _, m := range s.rack.Machines {
		id, err := m.BootID()
		Expect(err).NotTo(HaveOccurred())
		ids[m.Name] = id
	}
	return ids
}

// awaitRest waits until the given number of machines has been rebooted and everything is normal: no
// grants, cordons or needs, and all pods Ready. Then it lets the witness testify.
func (s *site) awaitRest(ctx context.Context, w *witness, reboots int) {
	GinkgoHelper()
	s.eventually(ctx, fmt.Sprintf("%d rebooted and in service", reboots), func(g Gomega) {
		done := 0
		for _, v := range w.nodes.Read().Views {
			g.Expect(v.State).To(BeElementOf(timeline.Back, timeline.UpToDate), "%s: %s", v.Node, v.Why)
			done += v.Reboots
		}
		g.Expect(done).To(Equal(reboots))
		status := s.policyStatus(ctx, g)
		g.Expect(status.Grants).To(BeEmpty())
		g.Expect(status.Nodes.RebootRequired).To(BeZero())
	})
	for _, m := range s.rack.Machines {
		Expect(s.node(ctx, m.Name).Spec.Unschedulable).To(BeFalse(), m.Name)
	}
	s.eventually(ctx, "every pod is back", func(g Gomega) { s.allPodsReady(ctx, g) })
	w.testify(ctx)
}

// machine returns the named machine.
func (s *site) machine(name string) *rack.Machine {
	GinkgoHelper()
	for _, m := range s.rack.Machines {
		if m.Name == name {
			return m
		}
	}
	Fail("unknown machine " + name)
	return nil
}
