package config_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// createDatabase creates a pod on the node that uses two volumes: one of a claim, and one that is
// deleted with the pod.
func createDatabase(ctx context.Context, c *cluster, node string) {
	GinkgoHelper()
	claim, scratch := createVolume(ctx, c, "data-"+node), createVolume(ctx, c, "db-"+node+"-scratch")
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "db-" + node},
		Spec: corev1.PodSpec{
			NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "registry.example/c"}},
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
				}},
				{Name: "scratch", VolumeSource: corev1.VolumeSource{
					Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: scratch.Spec}},
				}},
			},
		},
	}
	_, err := c.admin.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
}

// createVolume creates a claim and a volume of the same name that are bound to each other, like the
// volume controller.
func createVolume(ctx context.Context, c *cluster, name string) *corev1.PersistentVolumeClaim {
	GinkgoHelper()
	modes, size := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	claim, err := c.admin.CoreV1().PersistentVolumeClaims(namespace).Create(ctx, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, Resources: corev1.VolumeResourceRequirements{Requests: size}, VolumeName: name,
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	_, err = c.admin.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			AccessModes: modes, Capacity: size,
			ClaimRef: &corev1.ObjectReference{Namespace: namespace, Name: name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: name},
			},
		},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	return claim
}

const (
	claims  = ownNamespace + "/persistentvolumeclaims"
	volumes = "/api/v1/persistentvolumes"
)

var listClaims, listVolumes = get(claims), get(volumes)

func getClaim(name string) attempt    { return get(claims + "/" + name) }
func getVolume(name string) attempt   { return get(volumes + "/" + name) }
func deleteClaim(name string) attempt { return remove(claims + "/" + name + dry) }
