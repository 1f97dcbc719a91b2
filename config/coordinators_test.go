package config_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// What behaviour 57 needs of the agents' pods.
var _ = Describe("other coordinators (behaviour 57)", func() {
	It("are seen by every agent, in the host's /run", func(ctx SpecContext) {
		spec := shipped.agentsIn(ctx, "config/default")
		Expect(writable(spec)).To(BeEmpty())
		Expect(spec.Volumes).To(ContainElement(HaveField("HostPath", HaveField("Path", "/run"))))
	})
})

// writable are the host's paths that the agent may write, by its own.
func writable(spec corev1.PodSpec) map[string]string {
	paths := map[string]string{}
	for _, mount := range spec.Containers[0].VolumeMounts {
		for _, volume := range spec.Volumes {
			if volume.Name == mount.Name && volume.HostPath != nil && !mount.ReadOnly {
				paths[mount.MountPath] = volume.HostPath.Path + " " + string(*volume.HostPath.Type)
			}
		}
	}
	return paths
}
