package config_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// What the engines, and behaviour 57, need in the agents' pods.
var _ = Describe("the host in the agents' pods", func() {
	// mounts maps the agent's paths to the host's. All of them are folders.
	mounts := func(spec corev1.PodSpec) map[string]string {
		paths := map[string]string{}
		for _, mount := range spec.Containers[0].VolumeMounts {
			for _, volume := range spec.Volumes {
				if volume.Name == mount.Name && volume.HostPath != nil && *volume.HostPath.Type != corev1.HostPathFile {
					Expect(mount.ReadOnly).To(BeTrue(), mount.Name)
					paths[mount.MountPath] = volume.HostPath.Path
				}
			}
		}
		return paths
	}

	It("mounts /run as a folder, and releases mounts below it together with the host", func() {
		spec := shipped.agents["n1"].Spec
		Expect(mounts(spec)).To(And(HaveKeyWithValue("/host/run", "/run"), HaveKeyWithValue("/run/dbus", "/run/dbus"),
			HaveKeyWithValue("/host/etc", "/etc"), HaveKeyWithValue("/host/usr", "/usr"), Not(HaveKey("/host/boot"))))
		Expect(spec.Containers[0].Args).To(ContainElement("--host-root=/host"))
		Expect(spec.Containers[0].VolumeMounts).To(ContainElement(And(
			HaveField("MountPath", "/host/run"), HaveField("MountPropagation", HaveValue(Equal(corev1.MountPropagationHostToContainer))))))
	})

	It("has more with components: kernels, deployments of bootc, and flags for engine kernel and for driving rpm-ostree", func(ctx SpecContext) {
		spec := shipped.agentsIn(ctx, with("config/default", "kernel", "bootc", "rpm-ostree-drive"))
		Expect(spec.Containers[0].Args).To(ContainElements("--engines=auto,kernel", "--rpm-ostree-drive"))
		Expect(mounts(spec)).To(And(HaveKeyWithValue("/host/usr", "/usr"), HaveKeyWithValue("/host/boot", "/boot"),
			HaveKeyWithValue("/host/run", "/run"), HaveKeyWithValue("/host/sysroot", "/sysroot")))
	})
})
