package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
	"github.com/reboot-operator/reboot-operator/hack/rack"
)

var _ = Describe("a host", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		here.usePolicy(ctx)
	})

	// Soft reboots need systemd 254. node-3 has 257, and the others have 252.
	It("soft-reboots in mid-drain: need, slot and boot stay, and the granted reboot is made afterwards", func(ctx SpecContext) {
		const node = "node-3"
		m := here.machine(node)
		boots, bootID := m.Boots(), here.bootIDs()[node]
		w, began := drainsSlowly(ctx, here, node)
		Expect(here.cluster.Kubectl(ctx, nil, "delete", "namespace", "slow", "--wait=false")).Error().NotTo(HaveOccurred())

		By("soft-rebooting, without a kubelet afterwards, so that everything stays as it is while it is looked at")
		for _, command := range []string{"systemctl disable kubelet", "systemctl soft-reboot"} {
			Expect(m.Run(ctx, strings.Fields(command)...)).Error().NotTo(HaveOccurred())
		}
		here.eventually(ctx, "it is up again by a soft reboot", func(g Gomega) {
			g.Expect(m.Run(ctx, "systemctl", "show", "--property=SoftRebootsCount", "--value")).To(Equal("1\n"))
			g.Expect(m.Run(ctx, "systemctl", "is-active", "update-engine", "containerd")).To(Equal("active\nactive\n"))
		})
		here.eventually(ctx, "its node is not Ready", func(g Gomega) {
			g.Expect(v1alpha1.NodeCondition(here.node(ctx, node).Status.Conditions, corev1.NodeReady).Status).To(Equal(corev1.ConditionUnknown))
		})
		Expect(m.Boots()).To(Equal(boots), "no boot")
		Expect(m.BootID()).To(Equal(bootID))
		Expect(draining(ctx, here, node)).To(Equal(began), "the record of the drain")
		required := v1alpha1.NodeCondition(here.node(ctx, node).Status.Conditions, v1alpha1.NodeRebootRequired)
		Expect(required.Status).To(Equal(corev1.ConditionTrue), required.Message)
		Expect(here.policyStatus(ctx, Default).History).NotTo(ContainElement(HaveField("Seq", began.Seq)), "no end of a granted reboot")

		Expect(m.Run(ctx, "systemctl", "enable", "--now", "kubelet")).Error().NotTo(HaveOccurred())
		here.awaitRest(ctx, w, 1)
		Expect(m.Boots()).To(Equal(boots + 1))
		Expect(here.policyStatus(ctx, Default).History).To(ContainElement(
			And(HaveField("Seq", began.Seq), HaveField("Result", v1alpha1.RebootSucceeded))))
	})

	// Debian 12 has systemd 252 and Debian 13 has 257, each with its own unattended-upgrades.
	It("is rebooted by Debian's unattended-upgrades, which is reported with the command that ends it; then it is the operator that reboots", func(ctx SpecContext) {
		debians := []*rack.Machine{here.machine("node-2"), here.machine("node-3")}
		const automatic = `Unattended-Upgrade::Automatic-Reboot "true";`
		for _, m := range debians {
			here.shell(ctx, m, "echo '"+automatic+"' >/etc/apt/apt.conf.d/52-reboot; systemctl start apt-daily-upgrade.timer")
			Expect(here.shell(ctx, m, "apt-config dump Unattended-Upgrade::Automatic-Reboot")).To(Equal(automatic+"\n"), "as apt has it")
		}
		w := witnessed(here)
		here.logf("a kernel is installed on node-2 and node-3")
		for _, m := range debians {
			here.shell(ctx, m, installKernel)
		}
		here.eventually(ctx, "each reports the need of the package's own hook, and who else may reboot it", func(g Gomega) {
			for _, m := range debians {
				node := here.node(ctx, m.Name)
				required := v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootRequired)
				g.Expect(required.Reason).To(Equal(string(v1alpha1.ReasonSentinelPresent)), "%s: %s", m.Name, required.Message)
				g.Expect(required.Message).To(ContainSubstring("/run/reboot-required exists on the host, because of linux-image-rack."))
				permitted := v1alpha1.NodeCondition(node.Status.Conditions, v1alpha1.NodeRebootPermitted)
				g.Expect(permitted.Reason).To(Equal(string(v1alpha1.ReasonCoordinatorConflict)), "%s: %s", m.Name, permitted.Message)
				g.Expect(permitted.Message).To(ContainSubstring("unattended-upgrades"))
			}
		})
		Expect(here.policyStatus(ctx, Default).Grants).To(BeEmpty())
		for _, m := range debians {
			_, command, _ := strings.Cut(v1alpha1.NodeCondition(here.node(ctx, m.Name).Status.Conditions, v1alpha1.NodeRebootPermitted).Message, "at any time: ")
			command, _, found := strings.Cut(command, " on the host")
			Expect(found).To(BeTrue())
			here.logf("%s: %s", m.Name, command)
			here.shell(ctx, m, command)
			Expect(here.shell(ctx, m, "apt-config dump Unattended-Upgrade::Automatic-Reboot")).To(ContainSubstring(`"false"`), "as apt has it")
			here.requestReboot(ctx, m)
			here.look(ctx, m)
		}
		here.awaitRest(ctx, w, len(debians))
	})
})

// installKernel installs a package whose postinst does the same as that of Debian's kernels: it
// runs the hooks of other packages, and that of unattended-upgrades creates /run/reboot-required.
const installKernel = `set -e
cd "$(mktemp -d)"
mkdir -p kernel/DEBIAN
cat >kernel/DEBIAN/control <<END
Package: linux-image-rack
Version: 6.99
Architecture: all
Maintainer: nobody <nobody@example.com>
Description: a kernel without files
END
cat >kernel/DEBIAN/postinst <<'END'
#!/bin/sh
set -e
run-parts --report --exit-on-error --arg=6.99-rack --arg=/boot/vmlinuz-6.99-rack /etc/kernel/postinst.d
END
chmod 755 kernel/DEBIAN/postinst
dpkg-deb --build kernel
dpkg --install kernel.deb`

// shell runs a command line in a machine.
func (s *site) shell(ctx context.Context, m *rack.Machine, line string) string {
	GinkgoHelper()
	output, err := m.Run(ctx, "sh", "-c", line)
	Expect(err).NotTo(HaveOccurred())
	return output
}

// look makes a machine's agent reconcile before its minute is over.
func (s *site) look(ctx context.Context, m *rack.Machine) {
	GinkgoHelper()
	look := fmt.Sprintf("%s/look=%d", v1alpha1.GroupVersion.Group, time.Now().UnixNano())
	Expect(s.cluster.Kubectl(ctx, nil, "annotate", "--overwrite", "node", m.Name, look)).Error().NotTo(HaveOccurred())
}
