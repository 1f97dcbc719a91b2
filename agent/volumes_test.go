package main

import (
	"context"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/reboot-operator/reboot-operator/api/protocol"
	"github.com/reboot-operator/reboot-operator/api/v1alpha1"
)

var _ = Describe("Volumes", func() {
	lasting := v1alpha1.RebootPolicySpec{Drain: &v1alpha1.Drain{VolumeDetachTimeout: &v1alpha1.Duration{Duration: time.Hour}}}

	// serving returns a machine with a database that is evicted, and a DaemonSet's pod that stays.
	// Both use a disk. The pod that stays also has a claim of NFS, which a kubelet never lists.
	serving := func(ctx SpecContext, spec v1alpha1.RebootPolicySpec) *machine {
		m := newMachine(ctx, spec)
		m.pod(ctx, "db", m.owner("StatefulSet"), claimOf(ctx, m, "data", diskOf(m, "data")))
		nfs := corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/"}}
		m.pod(ctx, "logs", m.owner("DaemonSet"), claimOf(ctx, m, "buffer", diskOf(m, "buffer")), claimOf(ctx, m, "archive", nfs))
		usesVolumes(ctx, m, volumeNameOf(m, "data"), volumeNameOf(m, "buffer"))
		m.start(ctx)
		m.shows(ctx, needOf, Equal("False UpToDate"))
		m.detectsABroadcast(ctx)
		return m
	}
	isEvicted := func(ctx SpecContext, m *machine) {
		GinkgoHelper()
		Eventually(func() error {
			return api.Get(ctx, client.ObjectKey{Namespace: "default", Name: m.Name + "-db"}, &corev1.Pod{})
		}).Should(MatchError(ContainSubstring("not found")))
	}
	waits := func(ctx SpecContext, m *machine) {
		GinkgoHelper()
		m.showsMeanwhile(ctx, 2*time.Second, conditionOf(corev1.NodeDrained), Equal("True VolumesInUse"))
		m.looksAgain(ctx)
		Expect(phaseOf(m.node(ctx))).To(Equal("1 Draining cordoned"))
		Expect(m.Logind.Reboots()).To(BeZero())
	}

	It("of evicted pods are waited for by name, but not those of pods that stay (behaviour 42)", func(ctx SpecContext) {
		m := serving(ctx, lasting)
		m.grant(ctx, 1, protocol.GrantActive)
		isEvicted(ctx, m)
		waits(ctx, m)
		Expect(messageOf(corev1.NodeDrained)(m.node(ctx))).To(And(
			ContainSubstring("for the kubelet to release %s ", volumeNameOf(m, "data")), Not(ContainSubstring(string(volumeNameOf(m, "buffer"))))))
		m.emits(ctx, v1alpha1.EventVolumesInUse)

		By("not being fooled by another volume that is let go")
		usesVolumes(ctx, m, volumeNameOf(m, "data"))
		waits(ctx, m)

		By("going on when the kubelet has let go")
		usesVolumes(ctx, m, volumeNameOf(m, "buffer"))
		m.shows(ctx, phaseOf, Equal("1 Rebooting cordoned"))
		Expect(m.eventsOf(ctx)).To(HaveKeyWithValue(v1alpha1.EventVolumesInUse, 1))
		Expect(m.requests.of("/persistentvolume")).To(ConsistOf(
			readsOf(m, "persistentvolumeclaims", "buffer"), readsOf(m, "persistentvolumes", "buffer"),
			readsOf(m, "persistentvolumeclaims", "archive"), readsOf(m, "persistentvolumes", "archive"),
		), "each is asked for once, and none of the database")
	})

	It("are waited for only for the rest of the time if the agent was killed (behaviours 42, 48)", func(ctx SpecContext) {
		m := serving(ctx, lasting)
		m.grant(ctx, 1, protocol.GrantActive)
		isEvicted(ctx, m)
		waits(ctx, m)
		m.emits(ctx, v1alpha1.EventVolumesInUse)
		before := conditionIn(m.node(ctx), corev1.NodeDrained).LastTransitionTime
		m.restart(ctx)
		waits(ctx, m)
		Expect(conditionIn(m.node(ctx), corev1.NodeDrained).LastTransitionTime).To(Equal(before), "from which the time counts")
		Expect(m.eventsOf(ctx)).To(HaveKeyWithValue(v1alpha1.EventVolumesInUse, 1))
		usesVolumes(ctx, m, volumeNameOf(m, "buffer"))
		m.shows(ctx, phaseOf, Equal("1 Rebooting cordoned"))
	})
})

// usesVolumes sets the volumes that the kubelet reports as in use.
func usesVolumes(ctx context.Context, m *machine, volumes ...corev1.UniqueVolumeName) {
	GinkgoHelper()
	node := m.node(ctx)
	before := node.DeepCopy()
	node.Status.VolumesInUse = volumes
	Expect(api.Status().Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
}

// diskOf returns a volume that the kubelet names as in nameOf.
func diskOf(m *machine, name string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: m.Name + "-" + name}}
}

func volumeNameOf(m *machine, disk string) corev1.UniqueVolumeName {
	return corev1.UniqueVolumeName("kubernetes.io/csi/disk.example.com^" + m.Name + "-" + disk)
}

// claimOf creates a claim and its volume for a pod, bound as by the volume controller.
func claimOf(ctx context.Context, m *machine, name string, source corev1.PersistentVolumeSource) corev1.Volume {
	GinkgoHelper()
	name = m.Name + "-" + name
	modes, size := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size}, VolumeName: name,
		},
	}
	Expect(api.Create(ctx, claim)).To(Succeed())
	Expect(api.Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: modes, Capacity: size, PersistentVolumeSource: source,
			ClaimRef: &corev1.ObjectReference{Namespace: "default", Name: name, UID: claim.UID},
		},
	})).To(Succeed())
	return corev1.Volume{Name: "v-" + name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
	}}
}

// readsOf returns the request for a claim or a volume.
func readsOf(m *machine, resource, name string) string {
	path := "/api/v1/" + resource + "/"
	if resource == "persistentvolumeclaims" {
		path = "/api/v1/namespaces/default/" + resource + "/"
	}
	return http.MethodGet + " " + path + m.Name + "-" + name
}
